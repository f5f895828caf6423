// Test functions with known minima, on which the programs in bench/hpo measure samplers.
//
// `suite` has ten functions of the kinds on which the literature compares samplers. `own` has ten more. Samplers are
// developed on `own`, so that they are not fitted to `suite`. A variant above 0 shifts the minimum within the space;
// the minimal value stays the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/tune.h"

namespace sinew::bench {

// The values of a point, by the names of its parameters.
class Values {
 public:
  Values(const tune::Space& space, const tune::Point& point) : space_(space), point_(point) {}
  double operator()(std::string_view name) const;
  double log10(std::string_view name) const;
  double log2(std::string_view name) const;
  bool is(std::string_view name, std::string_view choice) const;
  std::vector<double> all() const { return point_; }

 private:
  size_t index_of(std::string_view name) const;
  const tune::Space& space_;
  const tune::Point& point_;
};

// Returns how far variant `variant` of a function is shifted along an axis: a number in [-1, 1), or 0 for variant 0.
double shift(std::string_view function, int variant, int axis);

struct Function {
  std::string name;
  std::string space;  // JSON
  double minimum = 0;
  std::function<double(const Values&, int variant)> value;
};

const std::vector<Function>& suite_functions();
const std::vector<Function>& own_functions();

}  // namespace sinew::bench
