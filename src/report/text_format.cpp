#include "report/text_format.h"

#include <algorithm>

#include "base/utf8.h"

namespace sinew::report {

int rows_of(std::string_view line, int columns) {
  return columns > 0 ? std::max(1, (display_width(line) + columns - 1) / columns) : 1;
}

std::string fit(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string cut;
  int width = 0;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, static_cast<size_t>(std::max(1, decode_utf8(text, 0).size)));
    width += display_width(character);
    if (width > columns - 1) break;
    cut += character;
    text.remove_prefix(character.size());
  }
  return columns > 0 ? cut + "…" : cut;
}

}  // namespace sinew::report
