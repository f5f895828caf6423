#include "base/printable.h"

#include "base/utf8.h"

namespace sinew {
namespace {

// Bytes of the character at `at`; 0: none is there, or one that no terminal should get.
size_t good_character(std::string_view text, size_t at) {
  const CodePoint letter = decode_utf8(text, at);
  const uint32_t value = letter.value;
  const bool control = value < 0x20 || (value >= 0x7F && value < 0xA0);
  // Separators of lines, and marks that turn the direction of what follows.
  const bool turns = (value >= 0x2028 && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069);
  return control || turns ? 0 : static_cast<size_t>(letter.size);
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const size_t length = lines && text[at] == '\n' ? 1 : good_character(text, at);
    clean += length == 0 ? "?" : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return clean;
}

std::string printable_start(std::string_view text, size_t most) {
  const std::string clean = printable(text);
  if (clean.size() <= most) return clean;
  size_t end = 0;
  for (size_t next = 0; next <= most; next += static_cast<size_t>(decode_utf8(clean, next).size)) end = next;
  return clean.substr(0, end) + "...";
}

}  // namespace sinew
