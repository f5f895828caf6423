// Fuzzes the parser of lines of a command's output.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jobs/metric_line.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = sinew::jobs::read_metric_line(text);
  for (const auto& [name, value] : line.values) {
    const size_t slash = name.find('/');
    if (slash == 0 || slash == std::string::npos || name.find('/', slash + 1) != std::string::npos) std::abort();
  }
  if (line.step && *line.step < 0) std::abort();
  return 0;
}
