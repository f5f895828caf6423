// Runs the command of a job file, or a command alone, through jobs/.
#pragma once

#include <string>

#include "cli/commands.h"
#include "spec/spec.h"

namespace sinew::cli {

struct CommandOptions {
  std::string run_directory;  // holds the job file already
  std::string server;         // --server; empty: SINEW_SERVER
  bool resume = false, json = false;
};

// Runs the command from this process and returns the exit code. A run that is done already stays as it is.
int run_command_job(const spec::Job& job, const CommandOptions& options);

// The text of `sinew ps` for a run of a command; empty for another run.
std::string command_status(const std::string& run_directory, bool json);

}  // namespace sinew::cli
