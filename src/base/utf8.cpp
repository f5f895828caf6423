#include "base/utf8.h"

#include <cstring>

namespace sinew {

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < static_cast<size_t>(size)) return {};
  uint32_t value = first & (0xFFU >> (size + 1));
  for (int i = 1; i < size; ++i) {
    if ((byte(static_cast<size_t>(i)) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(static_cast<size_t>(i)) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
  return {value, size};
}

void append_utf8(uint32_t code_point, std::string& text) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word = 0;
    while (text.size() - at >= 8 && (std::memcpy(&word, text.data() + at, 8), (word & 0x8080808080808080) == 0))
      at += 8;
    if (at == text.size()) break;
    const int size = decode_utf8(text, at).size;
    if (size == 0) return at;
    at += static_cast<size_t>(size);
  }
  return std::string_view::npos;
}

}  // namespace sinew
