// Inside registry/: which contents were read and found right a short time ago, so that a client that downloads a large
// file range by range does not make the server read the whole file for each range. Any thread may use it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sinew::registry {

class RecentChecks {
 public:
  // A check counts for this long. Damage that changes neither size nor times of a file is found after that.
  static constexpr double kTrustSeconds = 600;

  explicit RecentChecks(Clock& clock) : clock_(clock) {}
  // Returns whether the content `key` was checked at most kTrustSeconds ago, when its files had this `stamp`. An empty
  // stamp never counts.
  bool has(const std::string& key, const std::string& stamp);
  void add(const std::string& key, const std::string& stamp);

 private:
  struct Check {
    std::string stamp;
    double seconds = 0;
  };
  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Check> checks_;
};

// Returns a text of the sizes, inodes and times of the files. Returns "" if one of them cannot be examined, or changed
// less than two seconds ago: it may change again without a new time.
std::string stamp_text(const std::vector<std::string>& paths, const Clock& clock);

}  // namespace sinew::registry
