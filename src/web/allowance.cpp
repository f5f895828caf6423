#include "web/allowance.h"

#include <algorithm>

namespace sinew::web {
namespace {

constexpr size_t kMostCallers = 10'000;

}  // namespace

double Allowance::take(const std::string& caller, double now) {
  if (!(per_second_ > 0)) return 0;
  const double most = 2 * std::max(per_second_, 1.0);
  if (buckets_.size() >= kMostCallers && !buckets_.contains(caller)) forget(now);
  Bucket& bucket = buckets_.try_emplace(caller, Bucket{most, now}).first->second;
  bucket.filled = std::min(most, bucket.filled + std::max(0.0, now - bucket.at) * per_second_);
  bucket.at = now;
  if (bucket.filled < 1) return (1 - bucket.filled) / per_second_;
  bucket.filled -= 1;
  return 0;
}

// Who has been away so long that the bucket is full again need not be remembered. If nobody has, all begin anew: memory
// stays bounded whoever invents callers.
void Allowance::forget(double now) {
  const double full_after = 2 * std::max(per_second_, 1.0) / per_second_;
  std::erase_if(buckets_, [&](const auto& entry) { return now - entry.second.at >= full_after; });
  if (buckets_.size() >= kMostCallers) buckets_.clear();
}

}  // namespace sinew::web
