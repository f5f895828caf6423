// Threads that do what may wait for a disk, so that those of the HTTP server never do.
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
  Pool(int threads, size_t most_waiting);
  ~Pool();                                // what is being done is; what waits is dropped, its clients are gone
  bool post(std::function<void()> work);  // false: too much waits already

 private:
  void work();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sinew::web
