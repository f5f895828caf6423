// Inside web/: worker threads for requests that may wait for a disk, so that the HTTP server's threads never wait. Each
// caller has its own queue.
//
// A free thread takes the next work of the caller whose works have used the least time so far. Callers that have used
// the same time take turns. So a caller that sends cheap requests does not wait behind another's expensive ones. A
// caller that was idle starts level with the others, because idle time does not count in its favour. (P. Goyal, H. Vin,
// H. Cheng, "Start-time fair queueing", SIGCOMM 1996.) Limits keep a caller from occupying all threads or filling the
// queue. Heavy works never occupy all threads, so that a light work does not wait for the end of a heavy one.
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
    int running_each = 12;        // most works of one caller that run at once
    size_t waiting_each = 2'000;  // most works of one caller that wait
    size_t waiting_all = 10'000;  // most works that wait
    int niceness = 0;             // nice value of the threads: above 0, the system prefers other threads
    int kept = 0;                 // so many threads begin no heavy work; below `threads`
  };
  enum class Outcome { kAccepted, kCallerHasTooMuch, kFull };
  enum class Weight { kLight, kHeavy };

  Pool(const Limits& limits, Clock& clock);
  ~Pool();  // completes the work that has begun and drops the work that waits
  // The light works of a caller begin before its heavy ones. Beside `running_each` works it may have `kept` light ones.
  Outcome post(const std::string& caller, std::function<void()> work, Weight weight = Weight::kHeavy);
  size_t running();
  size_t waiting();

 private:
  struct Queue {
    std::deque<std::function<void()>> waiting;
    int running = 0;
  };
  struct Caller {
    Queue light, heavy;
    size_t waiting() const { return light.waiting.size() + heavy.waiting.size(); }
    int running() const { return light.running + heavy.running; }
    // virtual time: the seconds that its works have taken; an idle caller starts with at least floor_
    double used = 0;
    uint64_t turn = 0;  // number of the turn in which its last work began
  };
  using Callers = std::map<std::string, Caller>;
  void run();
  void stop();  // waits until all threads have ended
  Queue* may_begin(Caller& caller) const;
  Callers::iterator next();
  void forget_idle_callers();

  const Limits limits_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Callers callers_;
  size_t waiting_ = 0, running_ = 0;
  int heavy_ = 0;  // running works that are heavy
  uint64_t turns_ = 0;
  double floor_ = 0;  // the virtual time of the work that began last
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sinew::web
