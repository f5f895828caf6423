// Inside store/: group commit. Every writer joins a queue. The first writer in the queue commits the writes of all that
// wait, while the next group gathers behind it. So a lone writer needs no thread switch, and many writers share one
// sync. The queue follows LevelDB's queue of writers (Ghemawat, Dean). For group commit see DeWitt et al.,
// "Implementation techniques for main memory database systems", 1984.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

#include "store/store.h"

namespace sinew::store {

struct PendingWrite {
  const Batch* batch = nullptr;
  Outcome outcome;
  std::exception_ptr error;  // if set, `outcome` has no meaning
  bool finished = false;
  std::condition_variable woken;
};

class CommitQueue {
 public:
  // Sets `outcome` or `error` of each write; never throws. The queue makes one such call at a time.
  using Commit = std::function<void(std::span<PendingWrite* const> group)>;
  explicit CommitQueue(Commit commit) : commit_(std::move(commit)) {}

  // Returns when the batch is durable or refused. Throws the `error` that the Commit function set. Any thread may call
  // it.
  Outcome write(const Batch& batch);

 private:
  void commit_group(std::unique_lock<std::mutex>& lock);

  const Commit commit_;
  std::mutex mutex_;
  std::deque<PendingWrite*> queue_;
  bool busy_ = false;  // a group is being committed
};

}  // namespace sinew::store
