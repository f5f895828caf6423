// Writes sizes rounded, for output. Job files need exact sizes: bytes_text of spec/ writes those.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

std::string size_text(int64_t bytes);  // "512 B", "1.5 MiB"

}  // namespace sinew
