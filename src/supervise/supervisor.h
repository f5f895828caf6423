// The supervisor of a run: keeps its coordinator and its workers on this machine alive until the run is over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/signals.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

struct SupervisorOptions {
  WorkerLaunch launch;
  std::string job_name;
  int64_t workers = 1, minimum = 1;
  int64_t elsewhere = 0;            // workers of the run that other supervisors keep alive
  int64_t workers_per_machine = 1;  // workers that share this machine's cores
  std::string listen = "127.0.0.1";
  bool tls = false;
  bool decides_first = false;  // spec::wants_fastest() of the job: a worker decides before the group begins
  std::function<void(const std::string&)> say = nullptr;  // events as sentences; called on the supervisor's thread
};

// Runs on the calling thread until the run is over, and returns the run's exit code. No process that it started
// outlives this call. SIGINT, SIGTERM and SIGHUP from `signals` ask for an orderly stop; a second SIGINT or SIGTERM
// ends all processes at once. SIGUSR1 asks for a checkpoint. Throws Error if the run directory is in use, or if the
// first process cannot be started.
int supervise(const SupervisorOptions& options, SignalSource& signals, Clock& clock);

}  // namespace sinew::supervise
