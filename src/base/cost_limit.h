// CostLimit bounds what one request may cost. It knows three limits: the time by which the server must answer, the
// memory that the request's data may take, and whether anybody still waits for the answer.
//
// A server sets the limit of a request for the thread that serves it (CostLimit::Scope). The code that reads on behalf
// of the request asks CostLimit::current() in every loop whose length a client can choose. The limit is not an
// argument, because hundreds of functions would only pass it on. A thread without a scope, such as one that trains, has
// no limit and pays one read of a thread-local pointer.
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
  // `until` is the monotonic time after which the request must end. `bytes` is the most data that it may hold at any
  // moment. `abandoned` (may be null) becomes true when nobody waits for the answer any more.
  CostLimit(const Clock& clock, double until, int64_t bytes, Flag abandoned = nullptr)
      : clock_(clock), until_(until), bytes_(bytes), abandoned_(std::move(abandoned)) {}
  CostLimit(const CostLimit&) = delete;
  CostLimit& operator=(const CostLimit&) = delete;

  // Returns whether the request must end now; never throws. For callbacks.
  bool is_over() const { return is_abandoned() || clock_.monotonic_seconds() > until_; }
  // Throws Error if the request must end now: REQUEST_ABANDONED or REQUEST_TOO_LONG.
  void check() const;
  // Counts `bytes` more bytes that the request holds. Throws Error (REQUEST_TOO_LARGE) if it now holds too many.
  void hold(int64_t bytes);
  void release(int64_t bytes) { held_ -= bytes; }
  int64_t held() const { return held_; }

  // The limit of this thread's request; null if there is none.
  static CostLimit* current() { return current_; }
  // Like check(), hold() and release() of this thread's limit. Do nothing if the thread has no limit.
  static void check_current() {
    if (current_ != nullptr) current_->check();
  }
  static void hold_current(int64_t bytes) {
    if (current_ != nullptr) current_->hold(bytes);
  }
  static void release_current(int64_t bytes) {
    if (current_ != nullptr) current_->release(bytes);
  }

  // Makes `limit` the limit of this thread until the scope ends. Null means no limit, for work that one request does on
  // behalf of others, such as a group commit.
  class Scope {
   public:
    explicit Scope(CostLimit* limit) : before_(current_) { current_ = limit; }
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CostLimit* const before_;
  };

  // For data that does not outlive a C++ scope. At its end, releases all that the request has held since its beginning.
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
