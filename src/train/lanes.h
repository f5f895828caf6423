// Inside train/: the threads that compute shards. One thread a shard, truly: each lane runs libtorch single-threaded
// whatever OMP_NUM_THREADS says, so that a shard's bits do not depend on how many cores there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sinew::train {

class Lanes {
 public:
  explicit Lanes(int count);  // the calling thread is lane 0; count - 1 threads are started
  ~Lanes();
  int count() const { return count_; }

  // Runs work(lane) on every lane side by side and returns when all are done. The first exception is rethrown; before
  // that on_failure is called once, on the lane that threw, so that the others need not wait for what it had.
  void run(const std::function<void(int)>& work, const std::function<void()>& on_failure = nullptr);

 private:
  void loop(int lane);
  void work_on(int lane);

  const int count_;
  const bool each_has_a_core_;  // then they look for work awhile before they sleep
  const std::function<void(int)>* work_ = nullptr;
  const std::function<void()>* on_failure_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> running_{0};
  std::condition_variable done_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Makes this thread compute as a lane does: one OpenMP and one MKL thread, denormals kept. Checks that it took.
void become_lane();

}  // namespace sinew::train
