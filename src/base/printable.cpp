#include "base/printable.h"

#include <algorithm>

namespace sinew {
namespace {

// Bytes of the character at the beginning; 0: none is there, or one that no terminal should get.
size_t good_character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t length = first >= 0xF0 && first <= 0xF4   ? 4
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xC2 && first <= 0xDF ? 2
                                                         : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xC2 && byte(1) < 0xA0) return 0;  // control characters of eight bits
  // Separators of lines, and marks that turn the direction of what follows.
  const bool turns = first == 0xE2 && ((byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
                                       (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return turns ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  std::string clean;
  while (!text.empty()) {
    const size_t length = lines && text[0] == '\n' ? 1 : good_character(text);
    clean += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

}  // namespace sinew
