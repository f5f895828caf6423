// Decodes, encodes and checks UTF-8 strictly (Unicode 15, table 3-7): overlong forms and surrogates are not valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinew {

struct CodePoint {
  uint32_t value = 0;
  int size = 0;  // in bytes; 0 if the bytes are not valid UTF-8
};
CodePoint decode_utf8(std::string_view text, size_t at);  // at < text.size()
void append_utf8(uint32_t code_point, std::string& text);
// Returns the offset of the first byte that is not valid UTF-8, or npos if the text is valid.
size_t first_invalid_utf8(std::string_view text);

}  // namespace sinew
