#include <charconv>
#include <limits>

#include "data/rows.h"

namespace sinew::data {
namespace {

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

std::optional<double> parse_any(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc{}) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  const bool tiny = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
  const double far = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return text.front() == '-' ? -far : far;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  // The fast path takes up to 15 digits with at most one point. Such a number is exactly (integer below 2^53) / (power
  // of ten up to 10^22), so one division rounds correctly (Clinger, "How to read floating point numbers accurately",
  // PLDI 1990). parse_any handles everything else.
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at != end && *at == '-') ++at;
  uint64_t digits = 0;
  const char* const first = at;
  const char* point = nullptr;
  for (; at != end; ++at) {
    const auto digit = static_cast<unsigned>(*at - '0');
    if (digit < 10) {
      digits = digits * 10 + digit;
    } else if (*at == '.' && point == nullptr) {
      point = at;
    } else {
      return parse_any(text);
    }
  }
  const auto length = end - first - (point != nullptr ? 1 : 0);
  if (length == 0 || length > 15) return parse_any(text);
  double value = static_cast<double>(digits);
  if (point != nullptr) value /= kPowersOfTen[end - point - 1];
  return *text.data() == '-' ? -value : value;
}

bool is_missing(std::string_view text) {
  if (!text.empty() && text.back() >= '0' && text.back() <= '9')
    return false;  // like most numbers, and none of the texts
  switch (text.size()) {
    case 0: return true;
    case 1: return text == "?";
    case 2: return text == "NA" || text == "na";
    case 3: return text == "NaN" || text == "nan" || text == "N/A" || text == "n/a" || text == "NAN" || text == "#NA";
    case 4:
      return text == "NULL" || text == "null" || text == "None" || text == "<NA>" || text == "#N/A" || text == "-NaN" ||
             text == "-nan";
    case 7: return text == "-1.#IND" || text == "1.#QNAN";
    case 6: return text == "1.#IND";
    case 8: return text == "-1.#QNAN" || text == "#N/A N/A";
    default: return false;
  }
}

}  // namespace sinew::data
