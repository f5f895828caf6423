#include "data/target_rounding.h"

#include <cmath>

#include "base/error.h"
#include "base/number_text.h"

namespace sinew::data {
namespace {

// in standard deviations; at this limit, neighbouring float32 numbers are 1/1000 of a standard deviation apart
constexpr double kMaxRounding = 1.0 / 2000;
constexpr double kConstant = 1e-12;  // a standard deviation this small beside the mean is itself rounding

}  // namespace

void TargetRounding::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
  const double rounding = std::abs(value - static_cast<double>(static_cast<float>(value)));
  if (rounding > rounding_) {
    rounding_ = rounding;
    worst_ = value;
  }
}

void TargetRounding::check(const std::string& place) const {
  if (count_ == 0) return;
  const double deviation = std::sqrt(squares_ / static_cast<double>(count_));
  if (!(deviation > kConstant * std::abs(mean_)) || !(rounding_ > kMaxRounding * deviation)) return;
  throw Error("DATA_TARGET_ROUNDED",
              place + ": the targets differ by too little for their size: they are around " + rounded_text(mean_) +
                  " with a standard deviation of " + rounded_text(deviation) + ", but " + rounded_text(worst_) +
                  " is rounded by " + rounded_text(rounding_) + " when it is stored in 32 bits",
              "subtract an offset from every target, for example their smallest value, and add it to the predictions");
}

}  // namespace sinew::data
