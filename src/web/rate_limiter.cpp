#include "web/rate_limiter.h"

#include <algorithm>

namespace sinew::web {
namespace {

constexpr size_t kMaxCallers = 10'000;

}  // namespace

double RateLimiter::take(const std::string& caller, double now, double own_per_second) {
  const double per_second = own_per_second > 0 ? own_per_second : per_second_;
  if (!(per_second > 0)) return 0;
  const double capacity = 2 * std::max(per_second, 1.0);
  if (buckets_.size() >= kMaxCallers && !buckets_.contains(caller)) remove_full_buckets(now);
  Bucket& bucket = buckets_.try_emplace(caller, Bucket{capacity, now}).first->second;
  bucket.tokens = std::min(capacity, bucket.tokens + std::max(0.0, now - bucket.updated) * per_second);
  bucket.updated = now;
  if (bucket.tokens < 1) return (1 - bucket.tokens) / per_second;
  bucket.tokens -= 1;
  return 0;
}

// A bucket that has had time to fill up at the usual rate equals a new one, so it can be removed. If too many buckets
// remain, removes all of them. So a client that invents callers cannot use up the memory.
void RateLimiter::remove_full_buckets(double now) {
  const double full_after = per_second_ > 0 ? 2 * std::max(per_second_, 1.0) / per_second_ : 2;
  std::erase_if(buckets_, [&](const auto& entry) { return now - entry.second.updated >= full_after; });
  if (buckets_.size() >= kMaxCallers) buckets_.clear();
}

}  // namespace sinew::web
