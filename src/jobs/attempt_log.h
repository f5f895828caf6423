// Reads and writes attempts.jsonl of a run directory: the attempts of a command and how each of them ended.
//
// The process that holds the run's lock writes this file. It syncs each line before it acts on it. Every attempt that
// began gets exactly one end. If the sinew process of an attempt was killed, the next process that takes the lock
// writes the end (close_interrupted).
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
  std::string mark;  // the attempt's SINEW_JOB_ID, which all its processes have in their environment
  std::string host;
  std::string boot;  // boot id of the machine; a reboot ends all processes of the attempt
  std::vector<std::string> groups;
  std::optional<std::string>
      // An ExitReason, "failed", or "interrupted" (sinew was killed). nullopt if the attempt has no end yet.
      reason;
  std::string why;
  double seconds = 0;
  bool unkillable = false;  // true: one of its processes survived SIGKILL
};

// Returns the records in the order of the file. Skips invalid lines, such as a torn last line. Returns no records if
// there is no file.
std::vector<AttemptRecord> read_attempts(Disk& disk, const std::string& directory);

class AttemptLog {
 public:
  AttemptLog(Disk& disk, std::string directory, Clock& clock)
      : disk_(disk), directory_(std::move(directory)), clock_(clock) {}

  void begin(const AttemptRecord& record);
  void end(int64_t attempt, const std::string& reason, const std::string& why, double seconds, bool unkillable = false);
  // Kills processes that are left of attempts without an end, writes the end of these attempts, and returns them.
  // Throws Error if a process of any earlier attempt survives.
  std::vector<AttemptRecord> close_interrupted();

 private:
  void append(const std::string& line);

  Disk& disk_;
  std::string directory_;
  Clock& clock_;
};

// Takes the run's lock. Throws Error if another process holds it. The reapers of a sinew process share its lock. If
// that process was killed, this function waits until its reapers have killed the command.
rundir::RunLock lock_run(const std::string& directory, Clock& clock);

}  // namespace sinew::jobs
