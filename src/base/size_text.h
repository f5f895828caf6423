// Writes rounded sizes for output. bytes_text of spec/ writes the exact sizes that job files need.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

std::string size_text(int64_t bytes);  // "512 B", "1.5 MiB"

}  // namespace sinew
