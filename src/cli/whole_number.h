// Whole numbers on the command line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
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

}  // namespace sinew::cli
