// Chooses the ends and the ticks of axes.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/number_text.h"
#include "plot/plot.h"

namespace sinew::plot {
namespace {

constexpr double kLargest = 1e300;  // so that the difference of two values is finite

// The smallest of 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

// Spreads a range that is so narrow that its ticks would be one number.
Range spread(Range data) {
  data.low = std::clamp(data.low, -kLargest, kLargest);
  data.high = std::clamp(data.high, -kLargest, kLargest);
  if (data.high < data.low) std::swap(data.low, data.high);
  const double size = std::max(std::abs(data.low), std::abs(data.high));
  if (data.high - data.low > size * 1e-9 && data.high - data.low > 1e-300) return data;
  if (size < 1e-290) return {0, 1};
  const double half = size / 20;
  return {data.low - half, data.high + half};
}

std::string fixed_text(double value, int decimals) {
  std::array<char, 400> buffer{};
  const int size = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  std::string text(buffer.data(), static_cast<size_t>(size));
  return text == "-0" ? "0" : text;
}

// The text of a tick: 12k, 0.25 or 1e-05, with as many digits as neighbours differ in.
std::string tick_text(double value, double step, double largest) {
  if (value == 0) return "0";
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  if (largest >= 1e15 || largest < 1e-3) {
    const auto power = [](double of) { return std::floor(std::log10(of) + 1e-9); };
    const double digits = 1 + power(std::abs(value)) - power(step);
    return rounded_text(value, static_cast<int>(std::clamp(digits, 1.0, 15.0)));
  }
  Unit unit{1, ""};
  if (largest >= 1e4) unit = *std::ranges::find_if(kUnits, [&](const Unit& one) { return largest >= one.size; });
  const double decimals = std::max(0.0, -std::floor(std::log10(step / unit.size) + 1e-9));
  return fixed_text(value / unit.size, static_cast<int>(std::min(decimals, 12.0))) + unit.name;
}

}  // namespace

double Scale::place(double value) const {
  if (!logarithmic) return (value - range.low) / (range.high - range.low);
  return (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low));
}

Scale linear_scale(Range data, int most_ticks, bool round_ends, double least_step) {
  Scale scale{.range = spread(data), .ticks = {}};
  Range& range = scale.range;
  const double step = std::max(least_step, round_step((range.high - range.low) / std::max(1, most_ticks - 1)));
  // Multiples of a rounding error must not add a tick.
  double first = std::ceil(range.low / step - 1e-6), last = std::floor(range.high / step + 1e-6);
  if (round_ends) {
    first = std::floor(range.low / step + 1e-6);
    last = std::ceil(range.high / step - 1e-6);
    range = {first * step, last * step};
  }
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  for (double i = first; i <= last; ++i) scale.ticks.push_back({i * step, tick_text(i * step, step, largest)});
  return scale;
}

Scale logarithmic_scale(Range data, int most_ticks) {
  const double low = std::max(data.low, 1e-300), high = std::clamp(data.high, low * 1.1, std::max(kLargest, low * 1.1));
  Scale scale{.range = {low, high}, .logarithmic = true, .ticks = {}};
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const double every = std::max(1.0, std::ceil((last - first + 1) / std::max(1, most_ticks)));
  const bool few = last - first < 3;
  for (double power = std::ceil(first / every) * every; power <= last; power += every) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double value = times * std::pow(10.0, power);
      if (times > 1 && !few) break;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
        scale.ticks.push_back({value, tick_text(value, value, value)});
    }
  }
  return scale;
}

}  // namespace sinew::plot
