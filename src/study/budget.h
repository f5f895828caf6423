// The budget of a study: time (tune.time) and money for training (tune.cost).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "spec/spec.h"
#include "study/event.h"
#include "study/scheduler.h"
#include "study/training_time.h"

namespace sinew::study {

class StudyBudget {
 public:
  // The time limit counts from here.
  StudyBudget(const spec::TuneOptions& tune, Clock& clock);

  void observe(const StudyEvent& event);                            // of any leader
  void start(int64_t id);                                           // this leader has started a process of the trial
  void stop(int64_t id);                                            // that process has ended
  bool started(int64_t id) const { return started_.contains(id); }  // by this leader, now or before
  // How long a trial has trained, in all its processes.
  double seconds_of(int64_t id) const;

  double elapsed_seconds() const { return clock_.monotonic_seconds() - began_; }
  // The used fraction of the time or of the money, whichever is larger; 1: all of it.
  double used() const;
  // Two sentences about the cost, for people; none: the study has no limit of its cost. `more`: trials that were
  // planned have not started.
  std::vector<std::string> summary(const std::string& directory, bool more) const;

 private:
  double training_seconds() const;
  double cost_used() const;

  Clock& clock_;
  double began_, time_limit_, price_;  // price: of an hour of training
  double cost_limit_;                  // 0: none
  TrainingTime time_;
  std::set<int64_t> started_;
  std::map<int64_t, double> running_;  // when each would have started if it had trained without interruption
};

// Which trials may still start. `pauses`: the pruner pauses trials; `found`: some trial is complete.
DrainMode drain_mode(double used, bool pauses, bool found);

}  // namespace sinew::study
