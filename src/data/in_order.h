// Private to data/: makes pieces in several threads and takes them in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sinew::data {

// Calls make(i) for i = 0..count-1 in `threads` threads, and take(i, piece) in this thread, in the order of i. At most
// three pieces for each thread wait. Rethrows the first failure in the order of i; no call runs any more after that.
template <typename Piece, typename Make, typename Take>
void in_order(int64_t count, int64_t threads, const Make& make, const Take& take) {
  struct Slot {
    std::optional<Piece> piece;
    std::exception_ptr failure;
  };
  const int64_t window = threads * 3;
  std::vector<Slot> slots(static_cast<size_t>(window));
  std::mutex mutex;
  std::condition_variable made, taken;
  int64_t next = 0, first = 0;  // the next piece to make, and the next one to take
  bool stop = false;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (true) {
      taken.wait(lock, [&] { return stop || next >= count || next < first + window; });
      if (stop || next >= count) return;
      const int64_t i = next++;
      lock.unlock();
      Slot slot;
      try {
        slot.piece = make(i);
      } catch (...) {
        slot.failure = std::current_exception();
      }
      lock.lock();
      slots[static_cast<size_t>(i % window)] = std::move(slot);
      made.notify_one();
    }
  };
  std::vector<std::jthread> workers;
  // Ends the threads before the slots are gone, also if take() throws.
  struct Stop {
    std::mutex& mutex;
    std::condition_variable& taken;
    bool& stop;
    std::vector<std::jthread>& workers;
    ~Stop() {
      {
        const std::lock_guard lock(mutex);
        stop = true;
      }
      taken.notify_all();
      workers.clear();
    }
  } ending{mutex, taken, stop, workers};
  for (int64_t i = 0; i < threads; ++i) workers.emplace_back(work);
  for (int64_t i = 0; i < count; ++i) {
    std::unique_lock lock(mutex);
    Slot& slot = slots[static_cast<size_t>(i % window)];
    made.wait(lock, [&] { return slot.piece || slot.failure; });
    const Slot piece = std::exchange(slot, Slot());
    first = i + 1;
    lock.unlock();
    taken.notify_all();
    if (piece.failure) std::rethrow_exception(piece.failure);
    take(i, *piece.piece);
  }
}

}  // namespace sinew::data
