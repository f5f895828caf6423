// A worker of a group: how it is started, and keeping one alive for a run that is supervised elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"

namespace sinew::cli {

// What workers are told to train.
struct GroupWork {
  std::string run_directory;
  std::string job;  // the file
  std::vector<std::string> overrides, flags;
  bool resume = false;
  double hang_seconds = 60;  // see WatchdogOptions::least_seconds; workers have patience with each other by it
};

// `url`: where the coordinator listens. Its network is the one others find this worker in (SINEW_LINK_LISTEN names
// another address). `later`: not one of the first; it goes on with what the run has become. `sharers`: workers that
// share the cores it may use; nullopt: as SINEW_LOCAL_WORKERS says.
ProcessOptions group_worker(const GroupWork& work, const std::string& url, bool later, std::optional<int64_t> sharers);

// Starts workers one after another, as make(later) says, until the run is over or its worker ends for good, and returns
// the exit code. The first SIGINT, SIGTERM or SIGHUP makes the worker hand over and leave, a second that is no SIGHUP
// kills it. `name` stands before what is said.
int keep_worker(const std::string& name, const std::string& run_directory,
                const std::function<ProcessOptions(bool later)>& make, Clock& clock);

}  // namespace sinew::cli
