// Inside web/: how many bytes each token has uploaded today (UTC), for the tokens that have a daily limit. The counts
// are kept in notes of the store, so that a restart does not reset them. Any thread.
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
  // Counts the bytes, also those of an upload that fails later. Returns false, and counts nothing, if they exceed
  // `limit` for this day. The first call for a token reads the store, and so may wait for it.
  bool take(const std::string& token, int64_t bytes, int64_t limit, int64_t now_ms);
  // Returns the change that keeps the token's count.
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
