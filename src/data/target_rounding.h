// Private to data/: finds out whether regression targets keep their differences when they are rounded to float32.
//
// Targets are rounded to float32 before they are standardised. Float32 numbers near 1.7e9 are 128 apart, so targets
// that differ by less, such as times in seconds, become equal. Without an error, a model would learn a constant.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::data {

class TargetRounding {
 public:
  void add(double value);
  // Throws Error, naming `place`, if the largest rounding error is not small beside the standard deviation of the
  // targets. Constant targets, and targets that float32 holds exactly, always pass.
  void check(const std::string& place) const;

 private:
  int64_t count_ = 0;
  // the mean of the values before rounding, and the sum of their squared distances from that mean
  double mean_ = 0, squares_ = 0;
  double rounding_ = 0, worst_ = 0;  // the largest rounding error, and the value that has it
};

}  // namespace sinew::data
