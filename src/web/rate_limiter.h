// Inside web/: limits the rate of requests of each caller with a token bucket (J. Turner, "New directions in
// communications", IEEE Communications Magazine, 1986). One thread at a time.
#pragma once

#include <map>
#include <string>

namespace sinew::web {

class RateLimiter {
 public:
  // Allows `per_second` requests a second, and bursts of twice as many. 0 means no limit.
  explicit RateLimiter(double per_second) : per_second_(per_second) {}
  // Counts a request at the time `now`, in seconds. Returns 0 if it is allowed, or else the seconds to wait.
  // `per_second` above 0 replaces the usual rate for this caller.
  double take(const std::string& caller, double now, double per_second = 0);

 private:
  struct Bucket {
    double tokens = 0, updated = 0;
  };
  void remove_full_buckets(double now);

  const double per_second_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace sinew::web
