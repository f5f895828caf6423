#include "base/resident_memory.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/proc.h"

namespace sinew {
namespace {

// Returns the bytes of the line that begins with `key`; 0 if no line does.
int64_t bytes_of_line(const std::string& text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, key.size(), key) == 0)
      return std::max<int64_t>(0, std::strtoll(text.c_str() + at + key.size(), nullptr, 10)) << 10;
    at = end + 1;
  }
  return 0;
}

}  // namespace

ResidentMemory resident_memory(const std::string& status) {
  return {.peak = bytes_of_line(status, "VmHWM:"),
          .files = bytes_of_line(status, "RssFile:"),
          .held = bytes_of_line(status, "RssAnon:") + bytes_of_line(status, "RssShmem:"),
          .data_space = bytes_of_line(status, "VmData:")};
}

ResidentMemory resident_memory() {
  return resident_memory(kernel_text("/proc/self/status"));
}

}  // namespace sinew
