#include "web/watcher.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace sinew::web {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr int64_t kFewEvents = 16;  // one may have some MiB
constexpr size_t kEnoughBytes = 4 << 20;

}  // namespace

std::vector<store::Event> next_events(store::Store& store, store::EventQuery query) {
  std::vector<store::Event> events;
  const auto most = static_cast<size_t>(query.limit);
  for (size_t bytes = 0; events.size() < most && bytes < kEnoughBytes;) {
    query.limit = std::min(kFewEvents, static_cast<int64_t>(most - events.size()));
    std::vector<store::Event> few = store.events(query);
    for (store::Event& event : few) {
      bytes += event.body.size();
      query.after = event.seq;
      events.push_back(std::move(event));
    }
    if (static_cast<int64_t>(few.size()) < query.limit) break;
  }
  return events;
}

Watcher::Watcher(store::Store& store, Clock& clock) : store_(store), clock_(clock), thread_([this] { watch(); }) {}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Waiting& left : waiting_) left.news({});
}

void Watcher::wait(store::EventQuery query, double seconds, News news) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(query), clock_.monotonic_seconds() + seconds, std::move(news), -1});
  changed_.notify_all();
}

size_t Watcher::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

// Each is answered outside the lock: what an answer sets off may wait again.
void Watcher::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (waiting_.empty()) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      continue;
    }
    std::list<Waiting> some;
    some.swap(waiting_);
    lock.unlock();
    look(some);
    lock.lock();
    waiting_.splice(waiting_.end(), some);
    if (!ending_) changed_.wait_for(lock, kBetweenLooks, [this] { return ending_; });
  }
}

// Numbers have no gaps, so whether there is a later one can be asked of any number; steps that double find the end.
void Watcher::find_newest() {
  const auto is_there = [&](int64_t seq) { return !store_.events({seq - 1, 1, {}}).empty(); };
  if (!is_there(newest_ + 1)) return;
  int64_t step = 1;
  while (is_there(newest_ + 2 * step)) step *= 2;
  for (newest_ += step; step > 0; step /= 2) {
    if (is_there(newest_ + step)) newest_ += step;
  }
}

// A store that can not be read now may be later; whoever waits hears nothing until then. Who was told that there is
// nothing up to the newest event is not looked for again before there is another.
void Watcher::look(std::list<Waiting>& some) {
  try {
    find_newest();
  } catch (const std::exception&) {
  }
  for (auto at = some.begin(); at != some.end();) {
    std::vector<store::Event> events;
    try {
      if (std::max(at->looked, at->query.after) < newest_) events = next_events(store_, at->query);
      at->looked = newest_;
    } catch (const std::exception&) {
    }
    if (events.empty() && clock_.monotonic_seconds() < at->until) {
      ++at;
      continue;
    }
    const News news = std::move(at->news);
    at = some.erase(at);
    try {
      news(std::move(events));
    } catch (const std::exception&) {
      // No memory for what it makes of them: its connection ends, and its client may ask again.
    }
  }
}

}  // namespace sinew::web
