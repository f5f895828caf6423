// Parses numbers as users write them, in the forms that JSON, YAML 1.1 and YAML 1.2 read alike.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "spec/amounts.h"

namespace sinew::spec {
namespace {

// The parts of a decimal number.
struct Decimal {
  bool negative = false;
  std::string_view whole, fraction;
  std::string_view exponent;  // with its sign; empty: none
};

std::optional<Decimal> split_number(std::string_view text) {
  Decimal decimal;
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) decimal.negative = text[at++] == '-';
  decimal.whole = text.substr(at, digits(text, at));
  at += decimal.whole.size();
  if (at < text.size() && text[at] == '.') {
    decimal.fraction = text.substr(at + 1, digits(text, at + 1));
    at += 1 + decimal.fraction.size();
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) return std::nullopt;
  if (decimal.whole.size() > 1 && decimal.whole[0] == '0') return std::nullopt;  // octal in YAML 1.1
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const size_t sign = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+') ? 1 : 0;
    const size_t count = digits(text, at + 1 + sign);
    if (count == 0) return std::nullopt;
    decimal.exponent = text.substr(at + 1, sign + count);
    at += 1 + sign + count;
  }
  if (at != text.size()) return std::nullopt;
  return decimal;
}

}  // namespace

size_t digits(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end - from;
}

std::optional<uint64_t> scaled(std::string_view whole, std::string_view fraction, int64_t shift) {
  std::string all = std::string(whole) + std::string(fraction);
  shift -= static_cast<int64_t>(fraction.size());
  all.erase(0, std::min(all.find_first_not_of('0'), all.size()));
  if (all.empty()) return 0;
  while (shift < 0 && !all.empty() && all.back() == '0') all.pop_back(), ++shift;
  if (shift < 0 || all.size() + static_cast<size_t>(shift) > 20) return std::nullopt;
  all.append(static_cast<size_t>(shift), '0');
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size()) return std::nullopt;
  return value;
}

bool is_number(std::string_view text) {
  return split_number(text).has_value();
}

std::optional<double> parse_number(std::string_view text) {
  if (!is_number(text)) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    // A number that is too small reads as 0, as in other programs. One that is too large has no value.
    return split_number(text)->exponent.starts_with('-') ? std::optional(0.0) : std::nullopt;
  }
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Whole> parse_whole(std::string_view text) {
  const std::optional<Decimal> decimal = split_number(text);
  if (!decimal) return std::nullopt;
  int64_t exponent = 0;
  if (!decimal->exponent.empty()) {
    std::string_view digits_of = decimal->exponent;
    if (digits_of[0] == '+') digits_of.remove_prefix(1);
    if (digits_of.size() > 6) return std::nullopt;
    std::from_chars(digits_of.data(), digits_of.data() + digits_of.size(), exponent);
  }
  const auto magnitude = scaled(decimal->whole, decimal->fraction, exponent);
  if (!magnitude) return std::nullopt;
  return Whole{decimal->negative && *magnitude != 0, *magnitude};
}

}  // namespace sinew::spec
