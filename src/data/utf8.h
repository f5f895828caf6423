// Inside data/: UTF-8 by the book (Unicode 15, table 3-7: no overlong forms, no surrogates). Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinew::data {

struct CodePoint {
  uint32_t value = 0;
  int size = 0;  // bytes; 0: not UTF-8 here
};
CodePoint decode_utf8(std::string_view text, size_t at);
void append_utf8(uint32_t code_point, std::string& text);
// Offset of the first byte that is not UTF-8; npos where all is well.
size_t first_invalid_utf8(std::string_view text);
// For a message: at most `most` bytes, cut between characters; '?' for what is not UTF-8 or would drive a terminal.
std::string shown(std::string_view text, size_t most = 40);

}  // namespace sinew::data
