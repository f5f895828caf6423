// The limit of what one request may cost: the time until it must be answered, the memory that its data takes, and
// whether anybody still waits for the answer.
//
// A server sets the limit of a request for the thread that serves it (CostLimit::Scope). The rooms below, which read on
// behalf of the request, ask CostLimit::current() in every loop whose length a client can choose. Passing the limit as
// an argument through every reading function would put it into hundreds of signatures that have no other use for it.
// A thread without a scope, such as one that trains, has no limit and pays one read of a thread-local pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/error.h"

namespace sinew {

// One thread at a time may use a limit; only the flag `abandoned` changes on other threads.
class CostLimit {
 public:
  using Flag = std::shared_ptr<const std::atomic<bool>>;
  // `until`: the monotonic time at which the request is over. `bytes`: how much data it may hold at once. `abandoned`
  // (may be null) becomes true when nobody waits for the answer any more.
  CostLimit(const Clock& clock, double until, int64_t bytes, Flag abandoned = nullptr)
      : clock_(clock), until_(until), bytes_(bytes), abandoned_(std::move(abandoned)) {}
  CostLimit(const CostLimit&) = delete;
  CostLimit& operator=(const CostLimit&) = delete;

  // Returns whether the request must end now. For callbacks that may not throw.
  bool is_over() const { return is_abandoned() || clock_.monotonic_seconds() > until_; }
  // Throws Error if the request must end now: REQUEST_ABANDONED or REQUEST_TOO_LONG.
  void check() const;
  // Counts data that the request holds from now on. Throws Error (REQUEST_TOO_LARGE) if that is too much.
  void hold(int64_t bytes);
  void release(int64_t bytes) { held_ -= bytes; }
  int64_t held() const { return held_; }

  // The limit of this thread's request; null if there is none.
  static CostLimit* current() { return current_; }
  // The same as the member functions for the limit of this thread, if there is one.
  static void check_current() {
    if (current_ != nullptr) current_->check();
  }
  static void hold_current(int64_t bytes) {
    if (current_ != nullptr) current_->hold(bytes);
  }
  static void release_current(int64_t bytes) {
    if (current_ != nullptr) current_->release(bytes);
  }

  // Makes `limit` the limit of this thread until the scope ends. Null: no limit, for work that one request does for
  // others as well, such as a group commit.
  class Scope {
   public:
    explicit Scope(CostLimit* limit) : before_(current_) { current_ = limit; }
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CostLimit* const before_;
  };

  // For data that ends with a scope: at the end of the scope the request holds as much as at its beginning.
  class Temporary {
   public:
    Temporary() : limit_(current_), before_(limit_ == nullptr ? 0 : limit_->held_) {}
    ~Temporary() {
      if (limit_ != nullptr) limit_->held_ = before_;
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;

   private:
    CostLimit* const limit_;
    const int64_t before_;
  };

 private:
  bool is_abandoned() const { return abandoned_ != nullptr && abandoned_->load(std::memory_order_relaxed); }

  static thread_local CostLimit* current_;
  const Clock& clock_;
  const double until_;
  const int64_t bytes_;
  const Flag abandoned_;
  int64_t held_ = 0;
};

}  // namespace sinew
