// Finds out what decides the bits of a result in this process and on this machine. Private to train/.
#pragma once

#include <map>
#include <string>

namespace sinew::train {

// Returns the build id of the program and of each loaded library that computes, draws or decodes numbers. The keys are
// "program", "libc", "libm", "libtorch_cpu", "libturbojpeg", "libpng" and so on. The values are the first 16 hex
// digits, or "unknown" for a file without a build id. Leaves out libraries that are not loaded. Takes microseconds.
std::map<std::string, std::string> build_ids();

}  // namespace sinew::train
