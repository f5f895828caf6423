#include "web/upload_quota.h"

#include <cstdio>

namespace sinew::web {
namespace {

constexpr int64_t kMsPerDay = 86'400'000;

std::string note_name(const std::string& token) {
  return "web.uploads." + token;
}

}  // namespace

UploadQuota::Count& UploadQuota::count_of(const std::string& token) {
  const auto [at, is_new] = counts_.try_emplace(token);
  if (!is_new) return at->second;
  long long day = 0, bytes = 0;
  const std::string note = store_.note(note_name(token));
  if (std::sscanf(note.c_str(), "%lld %lld", &day, &bytes) == 2) at->second = {day, bytes};
  return at->second;
}

bool UploadQuota::take(const std::string& token, int64_t bytes, int64_t limit, int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  Count& count = count_of(token);
  const int64_t today = now_ms / kMsPerDay;
  if (count.day != today) count = {today, 0};
  if (bytes > limit - count.bytes) return false;
  count.bytes += bytes;
  return true;
}

store::SetNote UploadQuota::note(const std::string& token) {
  const std::lock_guard lock(mutex_);
  const Count& count = count_of(token);
  return {note_name(token), std::to_string(count.day) + " " + std::to_string(count.bytes)};
}

}  // namespace sinew::web
