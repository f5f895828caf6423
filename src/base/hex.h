// Bytes as lower-case hex digits, two each.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinew {

std::string hex_of(std::span<const unsigned char> bytes);
// So many bytes of the kernel's randomness, for names and secrets that nobody may guess or give twice. Throws Error
// where the kernel gives none.
std::string random_hex(size_t bytes);

}  // namespace sinew
