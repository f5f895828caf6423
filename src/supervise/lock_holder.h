// Finds the process that holds the lock of a run, and asks it to stop the run.
#pragma once

#include <sys/types.h>

#include <string>

namespace sinew::supervise {

// Returns the process of this machine that took the run's lock, or 0 if that process has ended. The reapers of its
// command may then still hold the lock. Throws Error if the run is on another machine, or if this user has no
// permission to inspect the process.
pid_t process_that_holds(const std::string& run_directory);

// Asks the process that holds the run's lock to stop the run, and returns whether it was asked. Sends it SIGTERM. A
// worker that was elected coordinator gets a request to the run instead, because a signal would end only this worker;
// `again` then has no effect. `coordinators`: the hosts to which the request may go beside this machine, with commas
// (check_coordinator_address). Throws Error if the coordinator refuses the request, or is at another host.
bool ask_to_stop(const std::string& run_directory, pid_t holder, bool again, const std::string& coordinators);

}  // namespace sinew::supervise
