// Numbers on the command line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/commands.h"

namespace sinew::cli {

constexpr int64_t kMostWorkers = 4096;

// Throws UsageError that names `what` when the text is no whole number from `least` to `most`.
inline int64_t whole_number(const std::string& what, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError(what + " is a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                         ", not '" + text + "'",
                     "for example " + std::to_string(std::clamp<int64_t>(2, least, most)));
  }
  return value;
}

// Throws UsageError that names `what` when the text is no number above 0.
inline double number_above_0(const std::string& what, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || !(value < 1e300))
    throw UsageError(what + " is a number above 0, not '" + text + "'", "for example " + what + "=2.5");
  return value;
}

// "5s", "300ms", "5": seconds above 0. Throws UsageError that names `what` when the text is no time.
inline double seconds(const std::string& what, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double value = unit == "ms" ? number / 1000 : number;
  const bool known = unit.empty() || unit == "s" || unit == "ms";
  if (text.empty() || !known || !(value > 0) || value > 86400)
    throw UsageError(what + " takes a time, not '" + text + "'", what + " 5s, or 300ms");
  return value;
}

}  // namespace sinew::cli
