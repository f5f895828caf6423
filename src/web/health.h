// Inside web/: knows at any moment whether the store can be used, without waiting for it. One thread looks at the store
// twice a second, and a second thread notices when the first one hangs for long. Any thread may call the member
// functions.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::web {

// Decides whether the store can be used, from the results of the looks at it and from the time that passes. If a look
// fails, the store cannot be used from then on. A slow look proves nothing; only a store that has not answered for long
// cannot be used. One thread at a time.
class Verdict {
 public:
  static constexpr double kPatienceSeconds = 10;
  static constexpr double kTickSeconds = 0.1;  // how often tick() is to be called

  void found(store::Condition look);  // a look has ended
  // `now` is in seconds. If more than two ticks passed since the last call, this process did not run meanwhile, and
  // that time does not count.
  void tick(double now);
  const store::Condition& condition() const { return condition_; }

 private:
  store::Condition condition_;
  std::optional<double> ticked_;
  double silent_ = 0;  // seconds since the last look that was not slow
};

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
  void look();
  void watch();
  void stop();  // waits until the threads have ended
  bool wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time);

  store::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Verdict verdict_;
  bool ending_ = false;
  uint64_t next_ = 1;
  std::map<uint64_t, GiveUp> begun_;
  std::thread looker_, watcher_;
};

}  // namespace sinew::web
