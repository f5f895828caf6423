// Who holds up a run that does not advance: a worker stuck in a kernel, on a disk that does not answer, in a deadlock.
//
// Pure: a look takes the time, the newest step and what the activity boards of this machine's workers say, and gives a
// sentence and who is to be ended. A run advances while steps are told or any lane begins anything: so an evaluation,
// steps that are done again after a resume and a long queue of shards are no standstill, however slow. Nothing is
// judged before a step was told: what a first step, loading and compiling take is nobody's business here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"

namespace sinew::cli {

struct WatchdogOptions {
  double least_seconds = 60;  // without any progress, before it is said ...
  double steps = 20;          // ... and not before so many times the usual step
  double end_factor = 1.5;    // after so many times that, who holds the run is ended
  double first_factor = 10;   // all of it times this before a usual step is known: it takes two that were told
  double longest_look = 1;    // a longer time between two looks counts as this: then this process did not run either
};

struct WatchedWorker {
  pid_t pid = 0;
  std::string name;      // "worker 2 (pid 4711)"
  bool stopped = false;  // by a signal or a debugger: what it does not do says nothing
  std::vector<LaneActivity> activity;
};

struct Watchdog {
  std::optional<double> looked;
  int64_t step = 0, advances = 0;                   // newest step told, how often it was a new one
  double still = 0;                                 // seconds without progress
  double since_step = 0, usual = 0;                 // seconds since a step was told; seconds a step, smoothed
  std::map<pid_t, std::vector<LaneActivity>> seen;  // at the last look
  bool said = false;                                // of this standstill
};

struct Standstill {
  std::string sentence;  // to say now; empty: nothing
  struct Holder {
    pid_t pid = 0;
    std::string why;
  };
  std::vector<Holder> to_end;
};

Standstill look_for_standstill(double now, Watchdog& watchdog, int64_t step, const std::vector<WatchedWorker>& workers,
                               const WatchdogOptions& options = {});

}  // namespace sinew::cli
