// What a process does that a launcher started as one of the others: it finds the run that the first one supervises.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "cli/group_worker.h"

namespace sinew::cli {

// Waits for the run's coordinator, at most `wait_seconds`, then keeps one worker until the run is over. Returns the
// run's exit code; throws Error when no coordinator comes up.
int take_part(const GroupWork& work, int64_t sharers, double wait_seconds, Clock& clock);

}  // namespace sinew::cli
