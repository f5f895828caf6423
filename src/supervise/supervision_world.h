// A simulated world for tests of the supervisor's decisions. Processes are numbers, and time passes only when a test
// advances the clock.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "supervise/supervision.h"

namespace sinew::supervise {

struct World {
  Supervision state;
  SupervisionOptions options;
  double now = 100;
  pid_t next_pid = 1000;
  int64_t number = 0;
  std::optional<Action> finished;
  std::vector<Action> sent;
  std::string last;  // the sentence that the last event returned
  int stops_delivered = 0;
  bool starts = true;  // false: every start fails

  explicit World(int64_t wanted) { state.wanted = wanted; }

  // Carries out the decisions until nothing is left to do at this instant.
  void settle() {
    for (int round = 0; round < 10 && !finished; ++round) {
      const auto actions = next_actions(now, state, options);
      bool changed = false;
      for (const Action& action : actions) {
        changed = changed || action.kind != Action::Kind::request_stop;
        if (action.kind == Action::Kind::start_coordinator) start_coordinator();
        if (action.kind == Action::Kind::start_worker) start_worker();
        if (action.kind == Action::Kind::send) sent.push_back(action);
        if (action.kind == Action::Kind::request_stop) state.stop_delivered = ++stops_delivered > 0;
        if (action.kind == Action::Kind::finish) finished = action;
      }
      if (!changed) return;
    }
  }
  void start_coordinator() {
    if (starts) return coordinator_started(now, state, next_pid++);
    last = coordinator_not_started(now, state, "too many processes", options);
  }
  void start_worker() {
    if (starts) return worker_started(now, state, ++number, next_pid++);
    last = worker_not_started(now, state, "too many processes", options);
  }
  void tell(int64_t step, std::optional<int64_t> over = {}, int64_t computing = 0) {
    last = coordinator_answered(now, state, state.wanted, step, over, computing);
    settle();
  }
  void begin(int64_t step = 0) {
    settle();
    tell(step);
  }
  void pass(double seconds, int64_t step) {
    now += seconds;
    tell(step);
  }
  void end_worker(size_t index, ProcessEnd end, const std::vector<Work>& doing = {}) {
    last = worker_ended(now, state, state.workers.at(index).pid, end, doing, options);
    settle();
  }
  void end_coordinator(ProcessEnd end, std::optional<int64_t> over = {}) {
    last = coordinator_ended(now, state, end, over, options);
    settle();
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    for (const auto& worker : state.workers) found.push_back(worker.pid);
    return found;
  }
  // Ends every process that was sent a signal.
  void obey() {
    for (size_t done = 0; done < sent.size(); ++done) {
      const Action action = sent[done];
      if (action.pid == state.coordinator.pid) end_coordinator({0, action.signal});
      const auto all = pids();
      const auto found = std::find(all.begin(), all.end(), action.pid);
      if (found != all.end()) end_worker(static_cast<size_t>(found - all.begin()), {0, action.signal});
    }
    sent.clear();
  }
};

}  // namespace sinew::supervise
