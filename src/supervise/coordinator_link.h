// The supervisor's connection to the run's coordinator: the calls to it, and the contents of coordinator.json.
//
// CoordinatorLink is an interface, so that a simulation can answer the calls without a network. file_coordinator_link()
// makes the real implementation. No call throws, because the supervisor must continue whatever the coordinator does.
// Only one thread may use a CoordinatorLink.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cluster/cluster.h"

namespace sinew::supervise {

class CoordinatorLink {
 public:
  virtual ~CoordinatorLink() = default;

  // Returns true once the coordinator with this pid has published its address. The calls below then go to this
  // coordinator.
  virtual bool connect(pid_t coordinator) = 0;
  virtual void disconnect() = 0;
  // the address of the newest coordinator that was reached; empty if none was reached
  virtual std::string url() const = 0;

  virtual std::optional<cluster::CoordinatorStatus> status() = 0;  // nullopt if there was no answer in time
  // The next two calls return false if the coordinator did not answer, or refused. `lost` reports the death of a
  // worker.
  virtual bool lost(pid_t worker, const std::string& why) = 0;
  virtual bool control(const std::string& kind, double value, const std::string& reason) = 0;

  // Returns the run's exit code, if the coordinator with this pid recorded that the run has ended.
  virtual std::optional<int64_t> recorded_end(pid_t coordinator) = 0;
  // Records how the run ended. Returns why the record could not be written, or an empty string if it was.
  virtual std::string record_end(int exit_code) = 0;
};

// Returns a connection that finds the coordinator through coordinator.json of this run.
std::unique_ptr<CoordinatorLink> file_coordinator_link(std::string run_directory);

}  // namespace sinew::supervise
