// Runs the command of a job file, or a command given on the command line, through jobs/.
#pragma once

#include <string>

#include "cli/commands.h"
#include "spec/spec.h"

namespace sinew::cli {

struct CommandOptions {
  std::string run_directory;  // holds the job file already
  std::string server;         // --server; if empty, SINEW_SERVER is used
  bool resume = false, json = false;
};

// Runs the command as this process's child and returns the exit code. If the run is already done, does nothing to it.
int run_command_job(const spec::Job& job, const CommandOptions& options);

// Returns the text of `sinew ps` for a run of a command, or "" for any other run.
std::string command_status(const std::string& run_directory, bool json);

}  // namespace sinew::cli
