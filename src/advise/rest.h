// What a remedy leaves of the time of a training. Private to advise/.
#pragma once

#include <algorithm>
#include <vector>

#include "advise/advise.h"

namespace sinew::advise {

inline constexpr double kWorthTrying = 0.05;   // a remedy that gains less is not named
inline constexpr double kLeastRest = 0.01;     // of a part that takes all the time, the gain has no bound
inline constexpr double kErrorOfRest = 0.25;   // of the time that remains, as a fraction
inline constexpr double kMuchComputing = 0.5;  // the part of the time from which other arithmetic is worth a thought

// The time that remains, as a fraction of the time before: between the two values, and probably the first.
struct Rest {
  double expected = 1, least = 1, most = 1;
};

inline Rest remains(double rest) {
  return {rest, rest * (1 - kErrorOfRest), rest * (1 + kErrorOfRest)};
}

inline Estimate gain_of(const Rest& rest) {
  const auto gain = [](double part) { return std::max(0.0, 1 / std::max(kLeastRest, part) - 1); };
  return {gain(rest.expected), gain(rest.most), gain(rest.least)};
}

// Models that take less time and learn something else. `computing`: the part of the time that goes to the model.
std::vector<Remedy> other_models(const Record& record, double computing, const spec::Job& job);

}  // namespace sinew::advise
