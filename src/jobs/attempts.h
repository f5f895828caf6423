// attempts.jsonl of a run directory: how often its command was started, and how each of these attempts ended.
//
// Written under the run's lock, each line synced before anything follows from it. An attempt that begins has one end,
// exactly: who takes the lock and finds one without writes the end that its own process could not (`close_open`).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "checkpoint/checkpoint.h"
#include "rundir/rundir.h"

namespace sinew::jobs {

struct AttemptRecord {
  int64_t attempt = 0;
  double began = 0;  // seconds since 1970
  std::string mark;  // SINEW_JOB_ID of its processes
  std::string host;
  std::string boot;  // of the machine: after another boot nothing of it can be left
  std::vector<std::string> groups;
  std::optional<std::string> ending;  // "crash"; "interrupted": sinew itself died; nullopt: it has not ended yet
  std::string why;
  double seconds = 0;
  bool left = false;  // something of it did not die of SIGKILL
};

// In order; lines that are none are passed over (a torn last one). No file: none.
std::vector<AttemptRecord> read_attempts(Disk& disk, const std::string& directory);

class AttemptLog {
 public:
  AttemptLog(Disk& disk, std::string directory, Clock& clock)
      : disk_(disk), directory_(std::move(directory)), clock_(clock) {}

  void begin(const AttemptRecord& record);
  void end(int64_t attempt, const std::string& ending, const std::string& why, double seconds, bool left = false);
  // Ends what is left of attempts that have no end, and writes it; those attempts. Throws Error while something does
  // not die, also of one that has its end.
  std::vector<AttemptRecord> close_open();

 private:
  void append(const std::string& line);

  Disk& disk_;
  std::string directory_;
  Clock& clock_;
};

// The run's lock; throws Error when somebody has it. Where its sinew was killed it is waited for: those who watched
// over the command hold it until they have ended all of it.
rundir::RunLock take_run(const std::string& directory, Clock& clock);

}  // namespace sinew::jobs
