// Defines the exit codes of the two programs. A code means the same for every command (docs/reference/exit-codes.md).
#pragma once

namespace sinew {

enum ExitCode {
  kDone = 0,
  kTrainingError = 1,
  kUsage = 2,
  kBudget = 3,
  kCheckFailed = 4,
  kResumable = 75,  // stopped or preempted, after saving a checkpoint
  // a worker lost its group and can join it again, so its supervisor restarts it; also: another coordinator replaced
  // this one
  kRejoin = 76,
};

}  // namespace sinew
