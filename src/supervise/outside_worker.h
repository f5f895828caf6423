// Defines a worker from outside: the worker that `sinew join` adds to a run that another supervisor started.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/signals.h"
#include "spec/spec.h"
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

// What the leader's facts say about what the job leaves to a measurement, as overrides; empty: they do not say it.
std::vector<std::string> decisions_in(const std::string& facts, const spec::Job& job);

// A worker that joins by a URL has no resolved.yaml of the run. If its job leaves something open that only a
// measurement decides, this asks the coordinator what the group has decided, and adds that to launch.overrides. The
// leader says it after its first steps, so this may wait. Returns the exit code if a signal asked this process to stop.
// Throws Error if the coordinator does not know it within `wait_seconds`.
std::optional<int> take_decisions(WorkerLaunch& launch, const spec::Job& job, double wait_seconds,
                                  SignalSource& signals, Clock& clock);

// Returns whether the run in this directory is over for good, and says so. Throws Error if the run was stopped or has
// failed: it can be resumed, but no worker needs to wait for that.
bool is_over(const std::string& run_directory, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
