// Finds workers that hold up a run: stuck in a compute kernel, on a disk that does not answer, or in a deadlock.
//
// look_for_standstill() is a pure function. It takes the time, the newest step and the activity boards of this
// machine's workers, and returns a sentence and the workers to end. The run makes progress while it reports steps, or
// while any lane begins anything. A long evaluation, steps repeated after a resume, or a long queue of shards therefore
// never counts as a standstill. The watchdog finds nothing before the first reported step, because loading and
// compiling may take any time.
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
  double least_seconds = 60;  // seconds without progress before the user gets a message ...
  double steps = 20;          // ... but at least this many times the usual time of a step
  double end_factor = 1.5;    // the workers that hold up the run are ended after this multiple of the time above
  double first_factor = 10;   // factor on all limits until two steps have shown the usual time
  // The most seconds that the time between two checks counts for. If more time passed, the supervisor itself probably
  // did not run, so the pause says nothing about the workers.
  double longest_look = 1;
};

struct WatchedWorker {
  pid_t pid = 0;
  std::string name;      // "worker 2 (pid 4711)"
  bool stopped = false;  // true: a signal or a debugger stopped the worker, so its silence means nothing
  std::vector<LaneActivity> activity;
};

struct Watchdog {
  std::optional<double> looked;
  int64_t step = 0, advances = 0;                   // the newest reported step; how often a new one was reported
  double still = 0;                                 // seconds without progress
  double since_step = 0, usual = 0;                 // seconds since the newest report; smoothed seconds per step
  std::map<pid_t, std::vector<LaneActivity>> seen;  // activity at the last check
  bool said = false;                                // true: the user has got a message about this standstill
};

struct Standstill {
  std::string sentence;  // for the user; may be empty
  struct Holder {
    pid_t pid = 0;
    std::string why;
  };
  std::vector<Holder> to_end;
};

Standstill look_for_standstill(double now, Watchdog& watchdog, int64_t step, const std::vector<WatchedWorker>& workers,
                               const WatchdogOptions& options = {});

}  // namespace sinew::supervise
