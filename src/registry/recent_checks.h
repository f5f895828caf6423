// Inside registry/: remembers which contents were read a short time ago and found undamaged. So if a client downloads a
// large file range by range, the server does not read the whole file for each range. Any thread may use it.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sinew::registry {

class RecentChecks {
 public:
  // How long a check counts. Damage that changes neither size nor times of a file is noticed only after this time.
  static constexpr double kTrustSeconds = 600;

  explicit RecentChecks(Clock& clock) : clock_(clock) {}
  // Returns whether the content `key` was checked at most kTrustSeconds ago, when its files had the same `stamp`.
  // Returns false for an empty stamp.
  bool has(const std::string& key, const std::string& stamp);
  void add(const std::string& key, const std::string& stamp);

  // Lets one thread at a time check a content, until the turn ends. The others wait for it, as long as their CostLimit
  // allows. Then has() mostly saves them the work.
  class Turn {
   public:
    Turn(RecentChecks& checks, std::string key);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    RecentChecks& checks_;
    const std::string key_;
  };

 private:
  struct Check {
    std::string stamp;
    double seconds = 0;
  };
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable turn_ended_;
  std::map<std::string, Check> checks_;
  std::set<std::string> turns_;  // what a thread checks now
};

// Returns a text of the sizes, inodes and times of the files. Returns "" if a file cannot be examined, or if it changed
// less than two seconds ago: then it may change again without a new time.
std::string stamp_text(const std::vector<std::string>& paths, const Clock& clock);

}  // namespace sinew::registry
