// Inside web/: worker threads for requests that may wait for a disk, so that the HTTP server's threads never do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sinew::web {

class Pool {
 public:
  Pool(int threads, size_t max_waiting);
  ~Pool();                                // completes the work that has begun and drops the work that waits
  bool post(std::function<void()> work);  // returns false if too much work waits already

 private:
  void run();
  void stop();  // waits until all threads have ended

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sinew::web
