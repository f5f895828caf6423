#include "base/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/error.h"

namespace sinew {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
constexpr double kLongestSeconds = 400 * 86400.0;

}  // namespace

template <std::floating_point Number>
std::string number_text(Number value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
template std::string number_text(float value);
template std::string number_text(double value);

std::string rounded_text(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

void append_integer(std::string& out, int64_t value) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

int64_t whole_number(const std::string& what, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least || value > most) {
    throw UsageError("OPTION_INVALID",
                     what + " is a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                         ", not '" + text + "'",
                     "for example " + std::to_string(std::clamp<int64_t>(2, least, most)));
  }
  return value;
}

double number_above_0(const std::string& what, const std::string& text, bool zero) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool in_range = (value > 0 || (zero && value == 0)) && std::isfinite(value);
  if (error != std::errc() || rest != end || !in_range)
    throw UsageError("OPTION_INVALID", what + " is " + (zero ? "0 or " : "") + "a number above 0, not '" + text + "'",
                     "for example 2.5");
  return value;
}

double duration_seconds(const std::string& what, const std::string& text, bool zero) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const auto unit = std::ranges::find(kUnits, std::string_view(rest, static_cast<size_t>(end - rest)), &Unit::name);
  const double seconds = unit == std::end(kUnits) ? -1 : value * unit->seconds;
  const bool in_range = (seconds > 0 || (zero && seconds == 0)) && seconds <= kLongestSeconds;
  if (error != std::errc() || !in_range)
    throw UsageError("OPTION_INVALID", what + " takes a duration, not '" + text + "'", "5s, 300ms, 10m, 2h or 1d");
  return seconds;
}

}  // namespace sinew
