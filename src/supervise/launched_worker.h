// A process that a launcher (srun, torchrun, mpirun) started as one of several. It joins the run that rank 0
// supervises.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/signals.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

// Waits for the run's coordinator, for at most `wait_seconds`, then runs the restart loop of one worker until the run
// is over. Returns the run's exit code. Throws Error if no coordinator comes up.
int join_launched(const WorkerLaunch& launch, int64_t workers_per_machine, double wait_seconds, SignalSource& signals,
                  Clock& clock, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
