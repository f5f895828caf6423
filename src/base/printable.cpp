#include "base/printable.h"

#include <algorithm>

#include "base/utf8.h"

namespace sinew {
namespace {

bool drives_a_terminal(uint32_t character) {
  const bool control = character < 0x20 || (character >= 0x7F && character < 0xA0);
  // These characters separate lines, or change the direction of the text after them.
  const bool format = (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
  return control || format;
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const size_t length = std::max<size_t>(static_cast<size_t>(point.size), 1);
    const bool kept = lines && (text[at] == '\n' || text[at] == '\t');
    clean += !kept && (point.size == 0 || drives_a_terminal(point.value)) ? "?" : text.substr(at, length);
    at += length;
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

std::string shell_quoted(std::string_view text) {
  // zsh expands a word that begins with "=".
  const bool plain = !text.empty() && text[0] != '=' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/' || c == '=' || c == ',' || c == ':' || c == '+' || c == '@';
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace sinew
