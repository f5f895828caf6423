// Functions to search, with known minima: the measure of samplers.
//
// `suite`: ten of the kinds others are compared on. `own`: ten more, to develop with, so that nothing is fitted to the
// first ten. A variant above 0 moves the minimum inside the space; the value there stays the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/tune.h"

namespace sinew::bench {

// A point by the names of its parameters.
class Values {
 public:
  Values(const tune::Space& space, const tune::Point& point) : space_(space), point_(point) {}
  double operator()(std::string_view name) const;
  double log10(std::string_view name) const;
  double log2(std::string_view name) const;
  bool is(std::string_view name, std::string_view choice) const;
  std::vector<double> all() const { return point_; }

 private:
  size_t place(std::string_view name) const;
  const tune::Space& space_;
  const tune::Point& point_;
};

// In [-1, 1): how far variant `variant` of a function moves along axis `axis`; 0 for variant 0.
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
