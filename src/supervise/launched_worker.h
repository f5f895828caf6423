// Runs a process that a launcher (srun, torchrun, mpirun) started as one of several. The process joins the run that
// rank 0 supervises.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/signals.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

// Waits until a worker can join the run in this directory: its coordinator answers, and the resolved job exists. Then
// returns nullopt. Returns the exit code if the run began and ended meanwhile, or if a signal asked this process to
// stop. Says once that it waits. Throws Error if it has waited longer than `wait_seconds`.
std::optional<int> wait_for_run(const std::string& run_directory, double wait_seconds, SignalSource& signals,
                                Clock& clock, const std::function<void(const std::string&)>& say);

// Waits for the run's coordinator, for at most `wait_seconds`. Then runs the restart loop of one worker until the run
// is over. Returns the run's exit code, even if the run was over before this process began. Throws Error if no
// coordinator comes up.
int join_launched(const WorkerLaunch& launch, int64_t workers_per_machine, double wait_seconds, SignalSource& signals,
                  Clock& clock, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
