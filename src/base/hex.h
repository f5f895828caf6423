// Converts bytes to lower-case hex digits, two for each byte, and says which texts are such digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

std::string hex_of(std::span<const unsigned char> bytes);
// Returns whether the text consists of exactly `digits` lower-case hex digits.
bool is_hex(std::string_view text, size_t digits);
// Fills `bytes` from lower-case hex digits. Returns false if the text is anything else, or has another length.
bool read_hex(std::string_view text, std::span<unsigned char> bytes);
// Returns `bytes` random bytes from the kernel as hex digits, for unique names and secrets. Throws Error if
// getrandom(2) fails.
std::string random_hex(size_t bytes);

}  // namespace sinew
