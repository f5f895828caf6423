// Converts bytes to lower-case hex digits, two for each byte.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinew {

std::string hex_of(std::span<const unsigned char> bytes);
// Returns `bytes` random bytes from the kernel as hex digits, for unique names and secrets. Throws Error if
// getrandom(2) fails.
std::string random_hex(size_t bytes);

}  // namespace sinew
