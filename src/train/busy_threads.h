// Threads that keep cores or the memory busy while a step is computed, to learn what the step depends on. Private to
// train/.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace sinew::train {

class BusyThreads {
 public:
  // Enough that no cache holds it. All threads read the same bytes.
  static constexpr size_t kBytes = size_t{128} << 20;
  explicit BusyThreads(int count);  // throws what std::thread and std::vector throw; then no thread is left
  ~BusyThreads();
  int count() const { return static_cast<int>(threads_.size()); }

  enum class Work { rest, compute, read_memory };
  // From now on all threads do this. One thread calls it.
  void work(Work what);

 private:
  void loop(size_t thread);
  void stop();
  std::vector<double> numbers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<Work> work_{Work::rest};
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sinew::train
