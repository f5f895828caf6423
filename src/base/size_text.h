// Sizes as a person reads them. For files that are looked at, not for job files: those have spec's exact bytes_text.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

std::string size_text(int64_t bytes);  // "512 B", "1.5 MiB"

}  // namespace sinew
