#include "train/lanes.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include "base/check.h"
#include "base/proc.h"
#include "model/model.h"

namespace sinew::train {
namespace {

// A phase of a small step takes about ten microseconds, and sleeping and waking take as long. Lanes therefore spin for
// a moment before they sleep, but only if every lane can have its own core. With fewer cores, a spinning lane would
// take the core from the lane that it waits for.
constexpr int kSpins = 2000;

template <typename Done>
bool spin_until(bool own_core, Done done) {
  if (!own_core) return done();
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    __builtin_ia32_pause();
  }
  return false;
}

}  // namespace

void become_lane() {
  model::use_one_thread();
  at::globalContext().setFlushDenormal(false);
  // If a user's model enables autocast, autocast's cache would keep the converted weights of one step for all later
  // steps.
  at::autocast::set_autocast_cache_enabled(false);
}

Lanes::Lanes(int count) : count_(count), each_has_a_core_(count <= usable_cores()) {
  SINEW_CHECK(count >= 1, count);
  become_lane();
  try {
    for (int lane = 1; lane < count; ++lane) threads_.emplace_back([this, lane] { loop(lane); });
  } catch (...) {  // the machine has no thread left
    stop();
    throw;
  }
}

Lanes::~Lanes() {
  stop();
}

void Lanes::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ++phase_;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::run(const std::function<void(int)>& work, const std::function<void()>& on_failure) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    on_failure_ = &on_failure;
    failure_ = nullptr;
    running_ = count_ - 1;
    ++phase_;
  }
  wake_.notify_all();
  work_on(0);
  if (!spin_until(each_has_a_core_, [this] { return running_ == 0; })) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void Lanes::work_on(int lane) {
  try {
    (*work_)(lane);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = std::current_exception();
    }
    if (*on_failure_) (*on_failure_)();
  }
}

void Lanes::loop(int lane) {
  become_lane();
  uint64_t seen = 0;
  while (true) {
    if (!spin_until(each_has_a_core_, [&] { return phase_ != seen; })) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return phase_ != seen; });
    }
    {
      const std::lock_guard lock(mutex_);  // the lock of run() makes work_ and stopping_ visible to this thread
      seen = phase_;
      if (stopping_) return;
    }
    work_on(lane);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace sinew::train
