#include "base/short_number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sinew {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size < 0.001 || size >= 99999.5) return format("%.2e", value);
  return format("%.*f", size < 0.99995 ? 4 : size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0, value);
}

std::string short_count(double value) {
  if (!std::isfinite(value)) return short_number(value);
  const double size = std::fabs(value);
  constexpr struct {
    double unit;
    const char* name;
  } kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, name] : kUnits) {
    if (size < unit * 0.9995) continue;
    const double scaled = value / unit;
    return format("%.*f%s", std::fabs(scaled) < 9.995 ? 2 : std::fabs(scaled) < 99.95 ? 1 : 0, scaled, name);
  }
  return size < 9.95 && value != std::floor(value) ? format("%.1f", value) : format("%.0f", value);
}

std::string short_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds > 9e15) return "long";
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return format("%llds", whole);
  if (whole < 3600) return format("%lldm%02llds", whole / 60, whole % 60);
  if (whole < 86400) return format("%lldh%02lldm", whole / 3600, whole / 60 % 60);
  return format("%lldd%02lldh", whole / 86400, whole / 3600 % 24);
}

std::string short_seconds(double low, double high) {
  const std::string from = short_seconds(low), to = short_seconds(high);
  return from == to ? to : from + "-" + to;
}

std::string short_range(double low, double high) {
  const double size = std::max(std::fabs(low), std::fabs(high)), width = high - low;
  std::string from = short_number(low), to = short_number(high);
  if (width > 0 && size >= 0.001 && size < 99999.5) {
    constexpr int kMostDigits = 6;
    int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(width / 2))), 0, kMostDigits);
    while (low > 0 && digits < kMostDigits && low * std::pow(10, digits) < 1) ++digits;  // what is above 0 stays so
    const double unit = std::pow(10, digits), slack = 1e-6;  // a number with so few digits stays as it is
    from = format("%.*f", digits, std::floor(low * unit + slack) / unit);
    to = format("%.*f", digits, std::ceil(high * unit - slack) / unit);
  }
  return from == to ? to : from + "-" + to;
}

}  // namespace sinew
