// Lets one worker decide, before a group begins, what its workers must not decide one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "spec/spec.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

// What a run has decided of what its job leaves to a measurement (spec/fastest.h), as overrides for another run or
// worker. Empty if it has decided nothing.
std::vector<std::string> decided_options(const spec::Job& job, const std::string& precision,
                                         const std::string& memory_format);

// Puts them in the place of the overrides that left it open: an option may be given only once.
void take_decided(std::vector<std::string>& overrides, const std::vector<std::string>& decided);

// Runs the worker until it has written the run's resolved.yaml, from which the group's workers take the decisions. The
// caller holds the run's lock. Returns the exit code of the run if it ends here: a stop was asked for, or the job
// cannot be trained (the worker has reported why). A second stop signal kills the worker. Throws Error if the worker
// cannot be started, and if another signal has ended it.
std::optional<int> decide_first(const WorkerLaunch& launch, SignalSource& signals);

}  // namespace sinew::supervise
