// Writes files about the present moment, which no one needs after a crash of the machine. disk.cpp implements it.
#pragma once

#include <string>
#include <string_view>

#include "base/disk.h"

namespace sinew {

// Replaces the whole file atomically, as write_durably() does, but syncs nothing: after a crash of the machine the file
// may be old, empty or missing.
void write_atomically(Disk& disk, const std::string& path, std::string_view text);

}  // namespace sinew
