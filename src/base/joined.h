// Joins texts with a separator between them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sinew {

// joined(words, ", ") is "a, b, c". `text` turns a part into its text. It may be a pointer to a member: joined(aliases,
// ", ", &Alias::name).
template <typename Parts, typename Text = std::identity>
std::string joined(const Parts& parts, std::string_view between, const Text& text = {}) {
  std::string all;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) all += between;
    first = false;
    all += std::invoke(text, part);
  }
  return all;
}

// Joins whole numbers: joined_numbers(shape, " x ") is "3 x 32 x 32".
template <typename Numbers>
std::string joined_numbers(const Numbers& numbers, std::string_view between) {
  return joined(numbers, between, [](const auto number) { return std::to_string(number); });
}

}  // namespace sinew
