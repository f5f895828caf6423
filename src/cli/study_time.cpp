#include "cli/study_time.h"

#include <utility>

namespace sinew::cli {

void StudyTime::told(const StudyEvent& event) {
  if (begins_life(event)) before_ += std::exchange(lives_[event.id], 0);
  if (event.seconds) runs(event.id, *event.seconds);
}

// A process that dies and is started again by the same one begins anew without a word.
void StudyTime::runs(int64_t id, double seconds) {
  double& life = lives_[id];
  if (seconds < life) before_ += life;
  life = seconds;
}

double StudyTime::seconds() const {
  double sum = before_;
  for (const auto& [id, life] : lives_) sum += life;
  return sum;
}

}  // namespace sinew::cli
