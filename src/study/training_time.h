// Counts how long the trials of a study have trained, according to its event log and to the processes that run now.
#pragma once

#include <map>

#include "study/event.h"

namespace sinew::study {

class TrainingTime {
 public:
  void observe(const StudyEvent& event);
  // Reports that a trial has trained for `seconds`, in all its processes. A smaller value than before changes nothing:
  // a process that starts from a checkpoint repeats work that was already paid for.
  void add(int64_t id, double seconds);
  double of(int64_t id) const;
  double seconds() const;  // the sum over all trials

 private:
  std::map<int64_t, double> seconds_;
};

}  // namespace sinew::study
