// UTF-8 by the book (Unicode 15, table 3-7: no overlong forms, no surrogates).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinew {

struct CodePoint {
  uint32_t value = 0;
  int size = 0;  // bytes; 0: not UTF-8 here
};
CodePoint decode_utf8(std::string_view text, size_t at);  // at: within the text
void append_utf8(uint32_t code_point, std::string& text);
// Offset of the first byte that is not UTF-8; npos where all is well.
size_t first_invalid_utf8(std::string_view text);

}  // namespace sinew
