#include "store/commit_queue.h"

#include <vector>

namespace sinew::store {
namespace {

constexpr size_t kMostInGroup = 4096;
constexpr size_t kMostWaiting = 65536;  // submitted; then submit waits: nobody may be so far ahead of the disk

}  // namespace

CommitQueue::~CommitQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    work_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Outcome CommitQueue::write(const Batch& batch) {
  Pending mine;
  mine.batch = &batch;
  Lock lock(mutex_);
  queue_.push_back(&mine);
  mine.woken.wait(lock, [&] { return mine.finished || (!busy_ && queue_.front() == &mine); });
  if (!mine.finished) lead(lock);
  lock.unlock();
  if (mine.trouble) std::rethrow_exception(mine.trouble);
  return std::move(mine.outcome);
}

void CommitQueue::submit(Batch batch, Done done) {
  auto pending = std::make_unique<Pending>();
  pending->own = std::move(batch);
  pending->batch = &pending->own;
  pending->done = std::move(done);
  Lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  work_.wait(lock, [this] { return queue_.size() < kMostWaiting; });
  queue_.push_back(pending.release());
  if (!busy_) work_.notify_all();
}

// Commits what waits, and tells those who wait. Entered by the first of the queue, or on behalf of it.
void CommitQueue::lead(Lock& lock) {
  const size_t count = std::min(queue_.size(), kMostInGroup);
  const std::vector<Pending*> group(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  busy_ = true;
  lock.unlock();
  commit_(group);
  lock.lock();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::unique_ptr<Pending>> submitted;
  for (Pending* one : group) {
    one->finished = true;
    if (one->done)
      submitted.emplace_back(one);
    else
      one->woken.notify_one();
  }
  // They are called outside the lock, still one group at a time, in the order they came.
  if (!submitted.empty()) {
    lock.unlock();
    for (const auto& one : submitted) one->done(std::move(one->outcome), one->trouble);
    lock.lock();
  }
  busy_ = false;
  if (!queue_.empty() && !queue_.front()->done) queue_.front()->woken.notify_one();
  work_.notify_all();
}

void CommitQueue::serve() {
  Lock lock(mutex_);
  for (;;) {
    work_.wait(
        lock, [this] { return !busy_ && ((!queue_.empty() && queue_.front()->done) || (closing_ && queue_.empty())); });
    if (queue_.empty()) return;
    lead(lock);
  }
}

}  // namespace sinew::store
