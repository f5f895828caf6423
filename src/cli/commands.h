// The commands of `sinew`, one file each; main.cpp holds the one visible list.
#pragma once

#include <string>
#include <vector>

namespace sinew::cli {

// What stands after the command's name. A run function returns the exit code; it may throw Error, which main prints.
using Arguments = std::vector<std::string>;

// Exit codes, the same for every command (docs/reference/exit-codes.md).
enum ExitCode {
  kDone = 0,
  kTrainingError = 1,
  kUsage = 2,
  kBudget = 3,
  kCheckFailed = 4,
  kResumable = 75,  // stopped or preempted after a checkpoint
};

int run_init(const Arguments& arguments);
int run_runs(const Arguments& arguments);

}  // namespace sinew::cli
