// How often a caller may ask: a bucket of tokens each, filled at a steady rate (the leaky bucket of J. Turner, "New
// directions in communications", IEEE Communications Magazine, 1986). Pure but for what it remembers; one thread.
#pragma once

#include <map>
#include <string>

namespace sinew::web {

class Allowance {
 public:
  // So many a second, and for a short while twice as many. 0: any number.
  explicit Allowance(double per_second) : per_second_(per_second) {}
  // 0: go ahead. Else the seconds after which to ask again.
  double take(const std::string& caller, double now);

 private:
  struct Bucket {
    double filled = 0, at = 0;
  };
  void forget(double now);

  const double per_second_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace sinew::web
