#include "study/training_time.h"

#include <algorithm>

namespace sinew::study {

void TrainingTime::observe(const StudyEvent& event) {
  if (event.seconds) add(event.id, *event.seconds);
}

void TrainingTime::add(int64_t id, double seconds) {
  seconds_[id] = std::max(seconds_[id], seconds);
}

double TrainingTime::of(int64_t id) const {
  const auto found = seconds_.find(id);
  return found == seconds_.end() ? 0 : found->second;
}

double TrainingTime::seconds() const {
  double sum = 0;
  for (const auto& [id, seconds] : seconds_) sum += seconds;
  return sum;
}

}  // namespace sinew::study
