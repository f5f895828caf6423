// Files of one JSON object a line: walking over them with bounded memory, and cutting them back to a step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace sinew::report {

struct Line {
  std::string_view text;  // without the newline; the first megabyte of a longer one
  int64_t number = 0;     // from 1
  uint64_t end = 0;       // offset in the file, past the newline
  bool whole = true;      // ends in a newline; false: the last line, possibly torn
  bool too_long = false;
};

// Calls for each line that is not empty. Throws DiskError; a file that is not there has no lines, and
// what is not a file (a device, a pipe) is refused.
void for_each_line(const std::string& path, const std::function<void(const Line&)>& visit);

// Drops the records after `step`, and a torn last line. `step_of` gives a line's step, nullopt where it has none; such
// a line shares the fate of the one before it. Throws DiskError.
void cut_after(const std::string& path, Step step,
               const std::function<std::optional<int64_t>(std::string_view)>& step_of);

}  // namespace sinew::report
