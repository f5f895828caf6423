// Runs a training in a process of its own and disturbs it according to a plan: kills and suspends its workers, kills
// its coordinator, and changes the number of its workers. `sinew chaos` uses it and prints a line for each event. One
// thread at a time may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/process.h"
#include "cluster/cluster.h"
#include "supervise/chaos_plan.h"

namespace sinew::supervise {

class DisturbedRun {
 public:
  // Starts the process, which trains in `directory`. `steps` is the number of steps that the run will make. Destroying
  // the object kills the process.
  DisturbedRun(const ProcessOptions& process, const std::string& directory, std::vector<ChaosEvent> plan,
               int64_t steps);

  const std::optional<ProcessEnd>& ended();
  // Makes the next event of the plan if it is due. Call it every few hundredths of a second. Passes a sentence about
  // each event to `say`.
  void look(double now, const std::function<void(const std::string&)>& say);
  int64_t events_done() const { return static_cast<int64_t>(next_); }

 private:
  std::optional<cluster::CoordinatorStatus> status() const;
  // false: the event is not possible now
  bool apply(const ChaosEvent& event, const cluster::CoordinatorStatus& status);
  std::vector<pid_t> workers_of(const cluster::CoordinatorStatus& status) const;

  const std::string directory_;
  const std::vector<ChaosEvent> plan_;
  const int64_t steps_;
  Process process_;
  std::optional<ProcessEnd> end_;
  std::set<pid_t> paused_;
  size_t next_ = 0;  // the next event: its index in the plan
  // when the run made its first step, and when the suspended worker continues
  std::optional<double> began_, continues_;
};

}  // namespace sinew::supervise
