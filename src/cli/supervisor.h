// The process a person started with `sinew train --workers N`: keeps the coordinator and the workers of one run alive.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "cli/group_worker.h"

namespace sinew::cli {

struct SupervisorOptions {
  GroupWork work;
  std::string job_name;
  int64_t workers = 1, minimum = 1;
  int64_t elsewhere = 0;  // workers of the run that somebody else keeps alive
  int64_t sharers = 1;    // workers that share this machine's cores
  std::string listen = "127.0.0.1";
  bool tls = false;
  double hang_seconds = 60;  // see WatchdogOptions::least_seconds
};

// Returns the run's exit code. When it returns or throws, no process it started is left.
int supervise(const SupervisorOptions& options, Clock& clock);

}  // namespace sinew::cli
