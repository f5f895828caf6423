// The threads that compute shards. One lane computes a whole shard. Inside a lane, libtorch uses one thread, whatever
// OMP_NUM_THREADS says, so a shard's bits do not depend on the number of cores. Private to train/.
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
  explicit Lanes(int count);  // the calling thread is lane 0; starts count - 1 threads
  ~Lanes();
  int count() const { return count_; }

  // Runs work(lane) on all lanes in parallel and returns when all are done. If a lane throws, it first calls on_failure
  // once, so that the other lanes do not wait for its shard. run() then rethrows the first exception.
  void run(const std::function<void(int)>& work, const std::function<void()>& on_failure = nullptr);

 private:
  void loop(int lane);
  void work_on(int lane);
  void stop();  // waits until all threads have ended

  const int count_;
  const bool each_has_a_core_;  // true: lanes spin for a while before they sleep
  const std::function<void(int)>* work_ = nullptr;
  const std::function<void()>* on_failure_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> phase_{0};
  std::atomic<int> running_{0};
  std::condition_variable done_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Configures the calling thread as a lane: one thread inside libtorch (model::use_one_thread), denormals kept.
void become_lane();

}  // namespace sinew::train
