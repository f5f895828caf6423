// Inside store/: group commit. Whoever writes joins a queue; the first of it commits for all that wait, the next group
// gathers meanwhile. So a lone writer pays no thread switch, and a crowd shares its syncs. After LevelDB's writers
// queue (Ghemawat, Dean); group commit: DeWitt et al., "Implementation techniques for main memory database systems",
// 1984.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "store/store.h"

namespace sinew::store {

struct Pending {
  const Batch* batch = nullptr;  // of whoever waits, or `own`
  Batch own;
  Outcome outcome;
  std::exception_ptr trouble;  // then there is no outcome
  Done done;                   // empty: somebody waits for it
  bool finished = false;
  std::condition_variable woken;
};

class CommitQueue {
 public:
  // Fills outcome or trouble of each; never throws, and is never called twice at a time.
  using Commit = std::function<void(std::span<Pending* const> group)>;
  explicit CommitQueue(Commit commit) : commit_(std::move(commit)) {}
  ~CommitQueue();  // when all that was submitted is done

  Outcome write(const Batch& batch);
  void submit(Batch batch, Done done);

 private:
  using Lock = std::unique_lock<std::mutex>;
  void lead(Lock& lock);
  void serve();

  const Commit commit_;
  std::mutex mutex_;
  std::deque<Pending*> queue_;  // the submitted ones are owned by it
  bool busy_ = false, closing_ = false;
  std::condition_variable work_;
  std::thread thread_;  // leads when the first in the queue was submitted; begun by the first submit
};

}  // namespace sinew::store
