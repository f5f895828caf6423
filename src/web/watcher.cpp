#include "web/watcher.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace sinew::web {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr int64_t kMaxBytes = 1 << 20;  // a response gets no further events once it has this many bytes

}  // namespace

std::vector<store::Event> next_events(store::Store& store, store::EventQuery query) {
  query.bytes = kMaxBytes;
  return store.events(query);
}

Watcher::Watcher(store::Store& store, Clock& clock) : store_(store), clock_(clock), thread_([this] { run(); }) {}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Waiter& waiter : waiting_) waiter.callback({});
}

void Watcher::wait(store::EventQuery query, double seconds, Callback callback) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(query), clock_.monotonic_seconds() + seconds, std::move(callback), -1});
  changed_.notify_all();
}

size_t Watcher::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

// Calls check() without the lock, because a callback may call wait() again.
void Watcher::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (waiting_.empty()) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      continue;
    }
    std::list<Waiter> waiters;
    waiters.swap(waiting_);
    lock.unlock();
    check(waiters);
    lock.lock();
    waiting_.splice(waiting_.end(), waiters);
    if (!ending_) changed_.wait_for(lock, kPollInterval, [this] { return ending_; });
  }
}

// Finds the number of the newest event. The numbers have no gaps, so a doubling search and then a binary search find
// it.
void Watcher::find_newest() {
  const auto exists = [&](int64_t seq) { return !store_.events({seq - 1, 1, {}}).empty(); };
  if (!exists(newest_ + 1)) return;
  int64_t step = 1;
  while (exists(newest_ + 2 * step)) step *= 2;
  for (newest_ += step; step > 0; step /= 2) {
    if (exists(newest_ + step)) newest_ += step;
  }
}

// Calls the callbacks of those waiters that have events or whose time is over. If the store cannot be read, the waiters
// stay until their time is over. Queries the store for a waiter only if there are events that it has not checked yet.
void Watcher::check(std::list<Waiter>& waiters) {
  try {
    find_newest();
  } catch (const std::exception&) {
  }
  for (auto at = waiters.begin(); at != waiters.end();) {
    std::vector<store::Event> events;
    try {
      if (std::max(at->checked, at->query.after) < newest_) events = next_events(store_, at->query);
      at->checked = newest_;
    } catch (const std::exception&) {
    }
    if (events.empty() && clock_.monotonic_seconds() < at->until) {
      ++at;
      continue;
    }
    const Callback callback = std::move(at->callback);
    at = waiters.erase(at);
    try {
      callback(std::move(events));
    } catch (const std::exception&) {
      // Out of memory. The client's connection ends, and the client may ask again.
    }
  }
}

}  // namespace sinew::web
