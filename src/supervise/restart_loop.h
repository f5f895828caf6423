// Keeps one worker alive for a run that another process supervises. `sinew join` uses this loop, and so do the
// processes that a launcher started beside rank 0.
//
// Its decisions are pure functions. They use the limits of the run's supervisor (SupervisionOptions), as far as these
// apply to a process that sees one worker and no steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/process.h"
#include "base/signals.h"
#include "supervise/supervision.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

// What the decisions remember about earlier workers.
struct Restarts {
  int64_t failures = 0;  // deaths in a row that the worker caused
  int64_t kills = 0;     // deaths by SIGKILL in a row
  LimitDeaths limit_deaths;
  int64_t early_exits = 0;  // the latest deaths in a row in which a young worker died, and not by a signal from outside
  FailedStarts no_worker;
  double next_start = 0;  // no worker is started before this time
};

struct RestartDecision {
  std::optional<int> code = {};  // the loop ends with this exit code; nullopt: it starts another worker
  std::string why = {};          // for the user; may be empty
};

// Returns whether no other worker replaces a worker that ended like this: the run is done, the worker left, or it could
// not read its job.
bool ends_for_good(const ProcessEnd& end);

struct WorkerLife {
  double seconds = 0;
  bool helped = false;  // the run made steps while the worker computed
};

// Decides what follows when a worker has ended after this life, its end is not for good, and the run goes on. The loop
// gives up when too many workers in a row died: most_failures by their own fault, most_kills by SIGKILL, or
// most_limit_deaths by the same limit. A worker that helped starts a new count, and so does one that lived long, except
// in the count of deaths by a limit.
RestartDecision after_end(double now, Restarts& restarts, const ProcessEnd& end, const WorkerLife& life,
                          const SupervisionOptions& options = {});

// Decides what follows when a worker could not be started for the reason `why`. The loop ends with an error when no
// worker could be started for no_help_seconds.
RestartDecision after_failed_start(double now, Restarts& restarts, const std::string& why,
                                   const SupervisionOptions& options = {});

// Starts workers one after another with make(later), until the run is over or a worker ends for good. Returns the exit
// code. Once coordinator.json says that the run is over, ends a worker that does not end by itself, and returns the
// run's exit code.
//
// The first stop request from `signals` makes the worker hand over its work and leave. A second request, unless it is
// SIGHUP, kills the worker. `say` gets events as sentences. Throws Error if the first worker cannot be started, because
// then the user has to correct something; later starts are tried again.
int restart_loop(const std::string& run_directory, const std::function<WorkerStart(bool later)>& make,
                 SignalSource& signals, Clock& clock, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
