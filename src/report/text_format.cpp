#include "report/text_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace sinew::report {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

struct Character {
  uint32_t code = 0;
  size_t length = 1;
};

// Returns the first character of the text. A byte that is not UTF-8 counts as one character.
Character first_character(std::string_view text) {
  const CodePoint point = decode_utf8(text, 0);
  return point.size == 0 ? Character() : Character{point.value, static_cast<size_t>(point.size)};
}

int width_of(const Character& character) {
  if (character.code < 0x1100) return 1;
  return character.code >= 0x2010 && character.code < 0x2600 ? 1 : 2;  // punctuation, arrows and box drawing are narrow
}

// Returns where the first part of the line ends: at the last blank that leaves a part of at most `room` columns, at two
// blanks rather than at one. Returns npos if no later word could follow.
size_t place_to_break(std::string_view line, int room) {
  size_t one = line.npos, two = line.npos;
  const size_t first_word = line.find_first_not_of(' ');
  for (size_t at = line.find(' ', first_word); at != line.npos; at = line.find(' ', at + 1)) {
    const size_t next = line.find_first_not_of(' ', at);
    if (next == line.npos) break;
    if (display_width(line.substr(0, at)) > room) return two != line.npos ? two : one != line.npos ? one : at;
    (next - at > 1 ? two : one) = at;
    at = next - 1;
  }
  return two != line.npos ? two : one;
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

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += width_of(character);
    text.remove_prefix(character.length);
  }
  return width;
}

int rows_of(std::string_view line, int columns) {
  return columns > 0 ? std::max(1, (display_width(line) + columns - 1) / columns) : 1;
}

int usable_columns(const Terminal& terminal) {
  return terminal.columns > 0 ? std::max(1, terminal.columns - 1) : 0;
}

std::string fit(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string cut;
  int width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += width_of(character);
    if (width > columns - 1) break;
    cut.append(text.substr(0, character.length));
    text.remove_prefix(character.length);
  }
  return columns > 0 ? cut + "…" : cut;
}

std::string wrap(std::string_view text, int columns) {
  constexpr std::string_view kIndent = "  ";
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    std::string_view indent;
    while (true) {
      const int room = columns - static_cast<int>(indent.size());
      out += indent;
      const size_t cut = display_width(line) <= room ? line.npos : place_to_break(line, room);
      if (cut == line.npos) break;
      out.append(line.substr(0, cut)) += '\n';
      line.remove_prefix(line.find_first_not_of(' ', cut));
      indent = kIndent;
    }
    out += line;
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace sinew::report
