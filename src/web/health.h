// Inside web/: knows at any moment whether the store can be used, without waiting for it. One thread looks at the store
// twice a second, and a second thread notices when the first one hangs. Any thread may call the member functions.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::web {

class Health {
 public:
  explicit Health(store::Store& store);  // a store that was just opened counts as usable until the first look
  ~Health();
  store::Condition condition() const;

  // Calls `give_up` if the store becomes unusable before the returned number is passed to done(). The call comes on a
  // thread of this object and gives the reason. `give_up` must not block and must not call this object.
  using GiveUp = std::function<void(const std::string& problem)>;
  uint64_t begin(GiveUp give_up);
  void done(uint64_t number);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void look();
  void watch();
  void stop();  // waits until the threads have ended
  bool wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time);

  store::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  store::Condition condition_;
  Time look_begun_;
  bool looking_ = false, ending_ = false;
  uint64_t next_ = 1;
  std::map<uint64_t, GiveUp> begun_;
  std::thread looker_, watcher_;
};

}  // namespace sinew::web
