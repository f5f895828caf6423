// The supervisor's connection to the run's coordinator: its calls, and what coordinator.json says.
//
// An interface, because a simulation answers the calls without a network. file_coordinator_link() is the real one. No
// call throws: the supervisor goes on whatever the coordinator does. One thread uses it.
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

  // True once the coordinator with this pid has published its address. From then on the calls below go to it.
  virtual bool connect(pid_t coordinator) = 0;
  virtual void disconnect() = 0;
  virtual std::string url() const = 0;  // of the newest coordinator; empty: none was reached yet

  virtual std::optional<cluster::CoordinatorStatus> status() = 0;  // nullopt: no answer in time
  // Both return false when the coordinator did not answer, or refused. `lost` reports the death of a worker.
  virtual bool lost(pid_t worker, const std::string& why) = 0;
  virtual bool control(const std::string& kind, double value, const std::string& reason) = 0;

  // The run's exit code, if the coordinator with this pid recorded that the run has ended.
  virtual std::optional<int64_t> recorded_end(pid_t coordinator) = 0;
  // Records how the run ended. Returns why that failed; empty: it did not.
  virtual std::string record_end(int exit_code) = 0;
};

// Finds the coordinator through coordinator.json of this run.
std::unique_ptr<CoordinatorLink> file_coordinator_link(std::string run_directory);

}  // namespace sinew::supervise
