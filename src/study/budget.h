// Measures how much of its budget a study has used: time (tune.time) and money for training (tune.cost).
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
  // The time limit counts from the construction of this object.
  StudyBudget(const spec::TuneOptions& tune, Clock& clock);

  void observe(const StudyEvent& event);                            // takes an event of any leader
  void start(int64_t id);                                           // this leader has started a process of the trial
  void stop(int64_t id);                                            // this leader's process of the trial has ended
  bool started(int64_t id) const { return started_.contains(id); }  // whether this leader has ever started it
  // Returns how long a trial has trained, in all its processes.
  double seconds_of(int64_t id) const;

  double elapsed_seconds() const { return clock_.monotonic_seconds() - began_; }
  // The used fraction of the time or of the money, whichever is larger; 1 if all of it is used.
  double used() const;
  // Returns one or two sentences about the cost for the user; empty if the study has no cost limit. `more` tells
  // whether some planned trials have not started.
  std::vector<std::string> summary(const std::string& directory, bool more) const;

 private:
  double training_seconds() const;
  double cost_used() const;

  Clock& clock_;
  double began_, time_limit_, price_;  // price_: the price of an hour of training
  double cost_limit_;                  // 0: no limit
  TrainingTime time_;
  std::set<int64_t> started_;
  // Maps each running trial to when it would have started if it had trained without interruption.
  std::map<int64_t, double> running_;
};

// Returns which trials may still start. `pauses` tells whether the pruner pauses trials, `found` whether a trial is
// complete.
DrainMode drain_mode(double used, bool pauses, bool found);

}  // namespace sinew::study
