#include "store/commit_queue.h"

#include <vector>

namespace sinew::store {
namespace {

constexpr size_t kMaxGroup = 4096;

}  // namespace

Outcome CommitQueue::write(const Batch& batch) {
  PendingWrite mine;
  mine.batch = &batch;
  std::unique_lock lock(mutex_);
  queue_.push_back(&mine);
  mine.woken.wait(lock, [&] { return mine.finished || (!busy_ && queue_.front() == &mine); });
  if (!mine.finished) commit_group(lock);
  lock.unlock();
  if (mine.error) std::rethrow_exception(mine.error);
  return std::move(mine.outcome);
}

// Commits the writes that wait and wakes their threads. Only the thread whose write is first in the queue may call it.
void CommitQueue::commit_group(std::unique_lock<std::mutex>& lock) {
  const size_t count = std::min(queue_.size(), kMaxGroup);
  const std::vector<PendingWrite*> group(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  busy_ = true;
  lock.unlock();
  commit_(group);
  lock.lock();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  for (PendingWrite* one : group) {
    one->finished = true;
    one->woken.notify_one();
  }
  busy_ = false;
  if (!queue_.empty()) queue_.front()->woken.notify_one();
}

}  // namespace sinew::store
