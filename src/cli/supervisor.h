// The process a person started with `sinew train --workers N`: keeps the coordinator and the workers of one run alive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sinew::cli {

struct SupervisorOptions {
  std::string run_directory, job_name;
  int64_t workers = 1, minimum = 1;
  std::string listen = "127.0.0.1";
  // What the workers are told to train.
  std::string job;  // the file
  std::vector<std::string> overrides, flags;
  bool resume = false;
  double hang_seconds = 60;  // see WatchdogOptions::least_seconds
};

// Returns the run's exit code. When it returns or throws, no process it started is left.
int supervise(const SupervisorOptions& options, Clock& clock);

}  // namespace sinew::cli
