// Defines a worker from outside: the worker that `sinew join` adds to a run that another supervisor started.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "supervise/worker_start.h"

namespace sinew::supervise {

struct OutsideWorker {
  std::string where;              // the run's directory or name, or the URL of its coordinator
  std::string secret_file;        // with a URL: it has a join token or the run's secret
  std::string root = "runs";      // where a run is found by name
  std::vector<std::string> more;  // if `where` is a URL: the job file, a directory of this machine, and overrides
  double hang_seconds = WorkerLaunch().hang_seconds;
  Programs programs;

  bool by_url() const { return where.starts_with("http://") || where.starts_with("https://"); }
};

// Returns how to start the worker. If `where` is a URL, writes the coordinator's address and secret to coordinator.json
// in this machine's own directory. Throws Error if no worker can ever join the run.
WorkerLaunch launch_of(const OutsideWorker& worker);

// Returns whether the run in this directory is over for good, and says so. Throws Error if the run was stopped or has
// failed: it can be resumed, but no worker needs to wait for that.
bool is_over(const std::string& run_directory, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
