#include "web/pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sinew::web {
namespace {

// Each work counts as at least this long, so that callers take turns even if their works take no time.
constexpr double kLeastSeconds = 1e-4;

}  // namespace

Pool::Pool(const Limits& limits, Clock& clock) : limits_(limits), clock_(clock) {
  try {
    for (int i = 0; i < limits_.threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {  // the system cannot create another thread
    stop();
    throw;
  }
}

Pool::~Pool() {
  stop();
}

void Pool::stop() {
  {
    // declared before the lock and so destroyed after its release, because destroying works may take long
    Callers dropped;
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& [name, caller] : callers_) {
      dropped[name].light.waiting.swap(caller.light.waiting);
      dropped[name].heavy.waiting.swap(caller.heavy.waiting);
    }
    waiting_ = 0;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Pool::Outcome Pool::post(const std::string& name, std::function<void()> work, Weight weight) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || waiting_ >= limits_.waiting_all) return Outcome::kFull;
    Caller& caller = callers_[name];
    if (caller.waiting() >= limits_.waiting_each) return Outcome::kCallerHasTooMuch;
    if (caller.waiting() == 0 && caller.running() == 0) caller.used = std::max(caller.used, floor_);
    (weight == Weight::kLight ? caller.light : caller.heavy).waiting.push_back(std::move(work));
    ++waiting_;
  }
  changed_.notify_one();
  return Outcome::kAccepted;
}

size_t Pool::running() {
  const std::lock_guard lock(mutex_);
  return running_;
}

size_t Pool::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

// Returns the queue of the caller's next work, or null if none of its works may begin now.
Pool::Queue* Pool::may_begin(Caller& caller) const {
  const bool below_limit = caller.running() < limits_.running_each;
  if (!caller.light.waiting.empty() && (below_limit || caller.light.running < limits_.kept)) return &caller.light;
  const bool may_be_heavy = below_limit && heavy_ < limits_.threads - limits_.kept;
  return !caller.heavy.waiting.empty() && may_be_heavy ? &caller.heavy : nullptr;
}

// Returns the caller whose work is next, or the end if no work may begin now.
Pool::Callers::iterator Pool::next() {
  auto best = callers_.end();
  for (auto at = callers_.begin(); at != callers_.end(); ++at) {
    const Caller& caller = at->second;
    if (may_begin(at->second) == nullptr) continue;
    const auto key = [](const Caller& one) { return std::pair(one.used, one.turn); };
    if (best == callers_.end() || key(caller) < key(best->second)) best = at;
  }
  return best;
}

void Pool::run() {
  if (limits_.niceness > 0) {
    // applies to this thread alone
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), limits_.niceness);
  }
  std::unique_lock lock(mutex_);
  while (true) {
    auto at = callers_.end();
    changed_.wait(lock, [&] { return ending_ || (waiting_ > 0 && (at = next()) != callers_.end()); });
    if (ending_) return;
    Caller& caller = at->second;
    Queue& queue = *may_begin(caller);
    const int heavy = &queue == &caller.heavy ? 1 : 0;
    std::function<void()> work = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    --waiting_;
    ++running_;
    ++queue.running;
    heavy_ += heavy;
    caller.turn = ++turns_;
    floor_ = std::max(floor_, caller.used);
    caller.used += kLeastSeconds;  // keeps the caller's next work from beginning before the first works of the others
    const double begun = clock_.monotonic_seconds();
    lock.unlock();
    work();
    work = nullptr;  // destroys the request and its file outside the lock, because that may take long
    lock.lock();
    --running_;
    --queue.running;
    heavy_ -= heavy;
    caller.used += std::max(0.0, clock_.monotonic_seconds() - begun);
    if (waiting_ > 0) changed_.notify_one();  // this caller may have been at its limit of running works
    forget_idle_callers();
  }
}

// Forgets how much time callers have used once it makes no difference: if no work is left, or if a caller would start
// level with the others anyway. If there are many callers, forgets all idle ones, so that their names do not fill the
// memory.
void Pool::forget_idle_callers() {
  constexpr size_t kMany = 1000;
  if (waiting_ == 0 && running_ == 0) return callers_.clear();
  if (callers_.size() < kMany) return;
  std::erase_if(callers_, [](const auto& one) { return one.second.waiting() == 0 && one.second.running() == 0; });
}

}  // namespace sinew::web
