// Finds the workers that hold up a run: stuck in a compute kernel, on a disk that does not answer, in a deadlock.
//
// A pure function: a look takes the time, the newest step and the activity boards of this machine's workers, and
// returns a sentence and the workers to end. The run advances while it reports steps, or while any lane begins
// anything. So a long evaluation, steps repeated after a resume and a long queue of shards never count as a standstill.
// The watchdog judges nothing before the first reported step, because loading and compiling may take any time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"

namespace sinew::supervise {

struct WatchdogOptions {
  double least_seconds = 60;  // without progress before the user is told ...
  double steps = 20;          // ... and at least so many times the usual time of a step
  double end_factor = 1.5;    // after so many times that, the workers that hold up the run are ended
  double first_factor = 10;   // all limits times this until two steps have shown the usual time
  double longest_look = 1;    // a longer pause between looks counts as this: the supervisor itself was not running
};

struct WatchedWorker {
  pid_t pid = 0;
  std::string name;      // "worker 2 (pid 4711)"
  bool stopped = false;  // by a signal or a debugger, so its silence means nothing
  std::vector<LaneActivity> activity;
};

struct Watchdog {
  std::optional<double> looked;
  int64_t step = 0, advances = 0;                   // the newest reported step; how often a new one was reported
  double still = 0;                                 // seconds without progress
  double since_step = 0, usual = 0;                 // seconds since the newest report; smoothed seconds per step
  std::map<pid_t, std::vector<LaneActivity>> seen;  // at the last look
  bool said = false;                                // the user was told about this standstill
};

struct Standstill {
  std::string sentence;  // for the user; empty: nothing to say
  struct Holder {
    pid_t pid = 0;
    std::string why;
  };
  std::vector<Holder> to_end;
};

Standstill look_for_standstill(double now, Watchdog& watchdog, int64_t step, const std::vector<WatchedWorker>& workers,
                               const WatchdogOptions& options = {});

}  // namespace sinew::supervise
