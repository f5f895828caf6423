#include "data/cells.h"

#include <algorithm>
#include <array>

#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The code points that stand for ' ' or '\'' between digits.
struct Lookalike {
  std::string_view bytes;
  char means;
};
constexpr auto kLookalikes = std::to_array<Lookalike>({
    {"\xC2\xA0", ' '},       // no-break space
    {"\xE2\x80\xAF", ' '},   // narrow no-break space
    {"\xE2\x80\x89", ' '},   // thin space
    {"\xE2\x80\x99", '\''},  // right single quotation mark
});

// The units, longest first. A word of letters must stand at the beginning or the end of the cell, as a symbol must.
constexpr auto kUnits =
    std::to_array<std::string_view>({"USD", "EUR", "GBP", "CHF", "JPY", "€", "₹", "₽", "₩", "£", "¥", "$", "%"});

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpace = "\xC2\xA0", kNarrow = "\xE2\x80\xAF";
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view space : {std::string_view(" "), kSpace, kNarrow}) {
      if (text.starts_with(space)) text.remove_prefix(space.size()), again = true;
      if (text.ends_with(space)) text.remove_suffix(space.size()), again = true;
    }
  }
  return text;
}

struct Pair {
  std::string_view yes, no;
};
constexpr auto kTruthPairs =
    std::to_array<Pair>({{"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"}, {"on", "off"}, {"1", "0"}});

constexpr size_t kLongestBoolean = 5;

}  // namespace

std::optional<double> parse_number(std::string_view text, NumberStyle style) {
  if (style.plain()) return parse_number(text);
  std::array<char, 64> plain;
  size_t size = 0, group = 0;
  bool grouped = false, whole = true;  // whole: before the decimal character and the exponent
  const auto closes_group = [&] { return !grouped || group == 3; };
  while (!text.empty()) {
    if (size == plain.size()) return std::nullopt;
    char c = text.front();
    size_t taken = 1;
    for (const Lookalike& other : kLookalikes) {
      if (style.thousands == other.means && text.starts_with(other.bytes)) c = other.means, taken = other.bytes.size();
    }
    text.remove_prefix(taken);
    if (is_digit(c)) {
      plain[size++] = c;
      ++group;
    } else if (whole && style.thousands != '\0' && c == style.thousands) {
      if (group == 0 || (grouped ? group != 3 : group > 3)) return std::nullopt;
      grouped = true;
      group = 0;
    } else if (whole && c == style.decimal) {
      if (!closes_group()) return std::nullopt;
      plain[size++] = '.';
      whole = false;
    } else if (c == '-' || c == '+') {
      plain[size++] = c;
    } else if ((c == 'e' || c == 'E') && size > 0) {
      if (whole && !closes_group()) return std::nullopt;
      plain[size++] = c;
      whole = false;
    } else {
      return std::nullopt;
    }
  }
  if (whole && !closes_group()) return std::nullopt;
  return parse_number(std::string_view(plain.data(), size));
}

UnitText split_unit(std::string_view text) {
  const size_t start = text.starts_with('-') ? 1 : 0;
  if (text.size() > start && is_digit(text[start]) && is_digit(text.back())) return {text, {}, false};
  UnitText split{without_spaces(text), {}, false};
  std::string_view rest = split.number;
  constexpr std::string_view kMinus = "\xE2\x88\x92";  // U+2212
  const bool minus = rest.starts_with(kMinus), sign = minus || rest.starts_with('-');
  if (sign) rest = without_spaces(rest.substr(minus ? kMinus.size() : 1));
  if (minus && (rest.starts_with('-') || rest.starts_with('+'))) return split;  // two signs
  if (minus) split = {rest, {}, true};
  for (const std::string_view unit : kUnits) {
    const bool before = rest.starts_with(unit) && rest.size() > unit.size(), after = rest.ends_with(unit);
    if (!before && !after) continue;
    split.number = without_spaces(before ? rest.substr(unit.size()) : rest.substr(0, rest.size() - unit.size()));
    split.unit = unit;
    split.negative = sign;
    return split;
  }
  return split;
}

bool resembles_number(std::string_view text) {
  const size_t first = text.find_first_not_of(" (+-.~<>=");
  if (first == std::string_view::npos || !is_digit(text[first])) return false;
  const auto digits = std::ranges::count_if(text, is_digit);
  const auto letters =
      std::ranges::count_if(text, [](unsigned char c) { return c >= 'A' && !is_digit(static_cast<char>(c)); });
  return digits >= letters;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text.size() > kLongestBoolean) return std::nullopt;
  const std::string lower = lower_case(std::string(text));
  for (const Pair& pair : kTruthPairs) {
    if (lower == pair.yes) return true;
    if (lower == pair.no) return false;
  }
  return std::nullopt;
}

bool are_opposites(std::string_view one, std::string_view other) {
  return std::any_of(kTruthPairs.begin(), kTruthPairs.end(), [&](const Pair& pair) {
    return (one == pair.yes && other == pair.no) || (one == pair.no && other == pair.yes);
  });
}

std::optional<double> parse_cell(std::string_view text, const CellFormat& format) {
  switch (format.kind) {
    case CellKind::number: {
      if (format.unit.empty()) {
        if (const auto number = parse_number(text, format.numbers)) return number;
      }
      const UnitText split = split_unit(text);  // without the hard spaces, too
      if (split.unit != format.unit) return std::nullopt;
      const auto value = parse_number(split.number, format.numbers);
      return value && split.negative ? std::optional(-*value) : value;
    }
    case CellKind::boolean: {
      const auto value = parse_boolean(text);
      return value ? std::optional(*value ? 1.0 : 0.0) : std::nullopt;
    }
    case CellKind::date: return parse_date(text, format.date);
    case CellKind::word: break;
  }
  return std::nullopt;
}

std::string described(const CellFormat& format) {
  switch (format.kind) {
    case CellKind::number: return format.unit.empty() ? "a number" : "a number with " + format.unit;
    case CellKind::boolean: return "true or false";
    case CellKind::date: break;
    case CellKind::word: return "a word";
  }
  switch (format.date) {
    case DateForm::iso: return "a date like 2024-05-31";
    case DateForm::day_first: return "a date like 31/5/2024";
    case DateForm::month_first: return "a date like 5/31/2024";
    case DateForm::named: return "a date like 31 May 2024";
    case DateForm::compact: break;
  }
  return "a date like 20240531";
}

}  // namespace sinew::data
