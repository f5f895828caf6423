// Inside report/: files with one JSON object per line. Reads them with bounded memory, and drops the records after a
// step.
//
// rundir::read_piece follows a file that another process writes: it returns only whole lines, and passes over overlong
// ones. Here a reader sees every line with its number and its end, a torn last line and an overlong one too, because it
// names the broken lines and cuts the file after a record.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace sinew::report {

struct Line {
  std::string_view text;  // without the newline; only the first megabyte of a longer line
  int64_t number = 0;     // counted from 1
  uint64_t end = 0;       // offset of the byte after the newline
  // true: the line ends in a newline; only the last line of a file may lack it, because it may be incomplete
  bool whole = true;
  bool too_long = false;  // true: the line is longer than a megabyte
};

// Calls `visit` for each line that is not empty. A missing file has no lines. Throws DiskError if the file cannot be
// read or is not a regular file (but a device or a pipe).
void for_each_line(const std::string& path, const std::function<void(const Line&)>& visit);

// Drops the records after `step`, and an incomplete last line. `step_of` returns the step of a line, or nullopt if the
// line has none; such a line is kept or dropped together with the line before it. Throws DiskError.
void cut_after(const std::string& path, Step step,
               const std::function<std::optional<int64_t>(std::string_view)>& step_of);

}  // namespace sinew::report
