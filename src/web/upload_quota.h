// Inside web/: counts how many bytes each token with a daily limit has uploaded today (UTC). The store keeps the counts
// (SetNote), so that a restart does not reset them. Any thread may use it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "store/store.h"

namespace sinew::web {

class UploadQuota {
 public:
  explicit UploadQuota(store::Store& store) : store_(store) {}
  // Counts the bytes, including those of an upload that fails later. If they would exceed `limit` on this day, returns
  // false and counts nothing. The first call for a token reads the store, so it may have to wait.
  bool take(const std::string& token, int64_t bytes, int64_t limit, int64_t now_ms);
  // Returns the change that stores the token's count.
  store::SetNote note(const std::string& token);

 private:
  struct Count {
    int64_t day = 0, bytes = 0;
  };
  Count& count_of(const std::string& token);

  store::Store& store_;
  std::mutex mutex_;
  std::map<std::string, Count> counts_;
};

}  // namespace sinew::web
