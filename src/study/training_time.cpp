#include "study/training_time.h"

#include <algorithm>

namespace sinew::study {

void StudyTime::told(const StudyEvent& event) {
  if (event.seconds) trained(event.id, *event.seconds);
}

void StudyTime::trained(int64_t id, double seconds) {
  seconds_[id] = std::max(seconds_[id], seconds);
}

double StudyTime::of(int64_t id) const {
  const auto found = seconds_.find(id);
  return found == seconds_.end() ? 0 : found->second;
}

double StudyTime::seconds() const {
  double sum = 0;
  for (const auto& [id, seconds] : seconds_) sum += seconds;
  return sum;
}

}  // namespace sinew::study
