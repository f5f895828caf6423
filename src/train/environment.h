// Inside train/: what of this process and this machine decides the bits of a result.
#pragma once

#include <map>
#include <string>

namespace sinew::train {

// The build id of the program and of each loaded library that computes, draws or decodes numbers: "program", "libc",
// "libm", "libtorch_cpu", "libturbojpeg", "libpng" and so on. The first 16 hex digits of each; a file without a build
// id is "unknown". Libraries that are not loaded are left out. Costs microseconds.
std::map<std::string, std::string> build_ids();

}  // namespace sinew::train
