#include "tune/rounding.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/number_text.h"

namespace sinew::tune {
namespace {

constexpr int kDigits = 4, kMoreDigits = 3, kAllDigits = 17;

// The decimal exponent of the first digit: 0 for 3.2, -2 for 0.032.
int place_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value))));
}

}  // namespace

double as_written(const Parameter& parameter, double value, int more) {
  if (parameter.kind != Parameter::Kind::real || parameter.step > 0 || value == 0) return value;
  int digits = kDigits;
  if (!parameter.log && parameter.high > parameter.low)
    digits = std::max(digits, place_of(value) - place_of(parameter.high - parameter.low) + kDigits);
  return std::clamp(rounded(value, std::min(digits + more, kAllDigits)), parameter.low, parameter.high);
}

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits - 1).ptr;
  double nearest = value;
  std::from_chars(text, end, nearest);
  return nearest;
}

std::string step_text(double step) {
  if (std::nearbyint(step) == step && std::abs(step) < 0x1p53) return std::to_string(static_cast<int64_t>(step));
  return number_text(step);
}

Point rounded(const Study& study, const Point& point) {
  const Space& space = study.space();
  Point nearest;
  for (int more = 0; more <= kMoreDigits; ++more) {
    Point candidate = point;
    for (size_t i = 0; i < space.size(); ++i) {
      if (!std::isnan(point[i])) candidate[i] = as_written(space[i], point[i], more);
    }
    if (study.is_new(candidate)) return candidate;
    if (more == 0) nearest = std::move(candidate);
  }
  return space.allows(nearest) ? nearest : point;
}

}  // namespace sinew::tune
