// Finds the process that holds the lock of a run.
#pragma once

#include <sys/types.h>

#include <string>

namespace sinew::supervise {

// Returns the process of this machine that took the run's lock, or 0 if that process has ended. The reapers of its
// command may then still hold the lock. Throws Error if the run is on another machine, or if this user has no
// permission to inspect the process.
pid_t process_that_holds(const std::string& run_directory);

}  // namespace sinew::supervise
