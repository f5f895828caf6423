#include "web/answer_memory.h"

#include <utility>

namespace sinew::web {

int64_t AnswerMemory::Counts::of(const std::string& caller) const {
  const auto found = of_caller.find(caller);
  return found == of_caller.end() ? 0 : found->second;
}

bool AnswerMemory::Counts::fits(const std::string& caller, int64_t bytes) const {
  const int64_t mine = of(caller);
  return (all == 0 || all + bytes <= most) && (mine == 0 || mine + bytes <= most / 4);
}

bool AnswerMemory::has_room(const std::string& caller) const {
  const std::lock_guard lock(counts_->mutex);
  return counts_->fits(caller, kSmall);
}

std::shared_ptr<const void> AnswerMemory::hold(const std::string& caller, int64_t bytes, bool always) {
  {
    const std::lock_guard lock(counts_->mutex);
    if (!always && !counts_->fits(caller, bytes)) return nullptr;
    counts_->of_caller[caller] += bytes;  // first, because it may throw
    counts_->all += bytes;
  }
  auto release = [counts = counts_, caller, bytes](const void*) {
    const std::lock_guard lock(counts->mutex);
    counts->all -= bytes;
    if ((counts->of_caller[caller] -= bytes) == 0) counts->of_caller.erase(caller);
  };
  return {counts_.get(), std::move(release)};  // if this throws, it calls `release`
}

int64_t AnswerMemory::held() const {
  const std::lock_guard lock(counts_->mutex);
  return counts_->all;
}

}  // namespace sinew::web
