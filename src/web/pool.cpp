#include "web/pool.h"

#include <utility>

namespace sinew::web {

Pool::Pool(int threads, size_t max_waiting) : max_waiting_(max_waiting) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {  // the machine has no thread left
    stop();
    throw;
  }
}

Pool::~Pool() {
  stop();
}

void Pool::stop() {
  {
    std::deque<std::function<void()>> dropped;  // destroyed after the lock, because destroying the work may take long
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Pool::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

void Pool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // destroys the request and its file without the lock, because it may take long
    lock.lock();
  }
}

}  // namespace sinew::web
