#include "web/health.h"

#include <exception>
#include <utility>

namespace sinew::web {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(500), kWatchInterval = std::chrono::milliseconds(100);
constexpr double kLookSeconds = 1;
// If look() takes longer than kLookSeconds, it hangs where it cannot be interrupted: in the disk, or while it connects.
constexpr auto kHangs = std::chrono::milliseconds(1500);

}  // namespace

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
  return condition_;
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
    looking_ = true;
    look_begun_ = std::chrono::steady_clock::now();
    lock.unlock();
    store::Condition now;
    try {
      now = store_.look(kLookSeconds);
    } catch (const std::exception& error) {
      now = {error.what(), false};
    }
    lock.lock();
    looking_ = false;
    condition_ = std::move(now);
  } while (wait(lock, kLookInterval));
}

// Notices a look() that hangs. Ends the requests that wait for a store that cannot be used.
void Health::watch() {
  std::unique_lock lock(mutex_);
  while (wait(lock, kWatchInterval)) {
    if (looking_ && condition_.usable && std::chrono::steady_clock::now() - look_begun_ > kHangs)
      condition_ = {"the store does not answer", false};
    if (condition_.usable || begun_.empty()) continue;
    const std::map<uint64_t, GiveUp> given_up = std::exchange(begun_, {});
    const std::string problem = condition_.problem;
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
