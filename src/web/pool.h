// Inside web/: worker threads for requests that may wait for a disk, so that the HTTP server's threads never do. Each
// caller has a queue of its own.
//
// A free thread takes the next work of the caller whose work has used the least time so far; among equals they take
// turns. So a caller that sends cheap requests does not wait behind another's expensive ones. A caller that was away
// starts level with the others: it cannot save up. (Start-time fair queuing: P. Goyal, H. Vin, H. Cheng, "Start-time
// fair queueing", SIGCOMM 1996.) A caller cannot occupy all threads, nor fill the queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace sinew::web {

class Pool {
 public:
  struct Limits {
    int threads = 16;
    int running_each = 12;        // works of one caller that run at once
    size_t waiting_each = 2'000;  // works of one caller that wait
    size_t waiting_all = 10'000;  // works that wait
    int niceness = 0;             // of the threads: above 0, the system prefers other threads of the machine
  };
  enum class Outcome { kAccepted, kCallerHasTooMuch, kFull };

  Pool(const Limits& limits, Clock& clock);
  ~Pool();  // completes the work that has begun and drops the work that waits
  Outcome post(const std::string& caller, std::function<void()> work);
  size_t running();
  size_t waiting();

 private:
  struct Caller {
    std::deque<std::function<void()>> waiting;
    int running = 0;
    double used = 0;    // virtual time: seconds that its works have taken, not less than the others had at its arrival
    uint64_t turn = 0;  // of its last work
  };
  using Callers = std::map<std::string, Caller>;
  void run();
  void stop();  // waits until all threads have ended
  Callers::iterator next();
  void forget_idle_callers();

  const Limits limits_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Callers callers_;
  size_t waiting_ = 0, running_ = 0;
  uint64_t turns_ = 0;
  double floor_ = 0;  // the virtual time of the newest work that has begun
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sinew::web
