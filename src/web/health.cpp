#include "web/health.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"

namespace sinew::web {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(500);
constexpr auto kWatchInterval = std::chrono::milliseconds(static_cast<int64_t>(Verdict::kTickSeconds * 1000));
constexpr double kLookSeconds = 1;

}  // namespace

void Verdict::found(store::Condition look) {
  if (look.slow) return;
  condition_ = std::move(look);
  silent_ = 0;
}

void Verdict::tick(double now) {
  silent_ += std::min(now - ticked_.value_or(now), 2 * kTickSeconds);
  ticked_ = now;
  if (silent_ > kPatienceSeconds && condition_.usable) condition_ = {"the store does not answer", false};
}

Health::Health(store::Store& store) : store_(store) {
  try {
    looker_ = std::thread([this] { look(); });
    watcher_ = std::thread([this] { watch(); });
  } catch (...) {  // the system cannot create another thread
    stop();
    throw;
  }
}

Health::~Health() {
  stop();
}

void Health::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread* thread : {&looker_, &watcher_}) {
    if (thread->joinable()) thread->join();
  }
}

store::Condition Health::condition() const {
  const std::lock_guard lock(mutex_);
  return verdict_.condition();
}

uint64_t Health::begin(GiveUp give_up) {
  const std::lock_guard lock(mutex_);
  begun_.emplace(next_, std::move(give_up));
  return next_++;
}

void Health::done(uint64_t number) {
  GiveUp ended;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = begun_.find(number);
  if (found == begun_.end()) return;
  ended = std::move(found->second);
  begun_.erase(found);
}

bool Health::wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time) {
  return !changed_.wait_for(lock, time, [this] { return ending_; });
}

void Health::look() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    store::Condition now;
    try {
      now = store_.look(kLookSeconds);
    } catch (const std::exception& error) {
      now = {error.what(), false};
    }
    lock.lock();
    verdict_.found(std::move(now));
  } while (wait(lock, kLookInterval));
}

// Notices a store that does not answer. Ends the requests that wait for a store that cannot be used.
void Health::watch() {
  std::unique_lock lock(mutex_);
  while (wait(lock, kWatchInterval)) {
    verdict_.tick(system_clock().monotonic_seconds());
    if (verdict_.condition().usable || begun_.empty()) continue;
    const std::map<uint64_t, GiveUp> given_up = std::exchange(begun_, {});
    const std::string problem = verdict_.condition().problem;
    lock.unlock();
    for (const auto& [number, give_up] : given_up) {
      try {
        give_up(problem);
      } catch (const std::exception&) {
        // Out of memory. The request ends at the HTTP server's time limit.
      }
    }
    lock.lock();
  }
}

}  // namespace sinew::web
