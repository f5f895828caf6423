// From the command line to jobs/: a job file with a command, or a command alone.
#pragma once

#include <string>

#include "cli/commands.h"
#include "spec/spec.h"

namespace sinew::cli {

struct CommandWords {
  std::string run_directory;  // its job.yaml is written
  std::string server;         // --server; empty: SINEW_SERVER
  bool resume = false, json = false;
};

// Runs it, in this process; the exit code. A run that is done already stays as it is.
int run_command_job(const spec::Job& job, const CommandWords& words);

// What `sinew ps` shows of a run of a command; "" when it is none.
std::string command_status(const std::string& run_directory, bool json);

}  // namespace sinew::cli
