// Inside report/: reads files with one JSON object on each line, with bounded memory, and drops the records after a
// step.
//
// rundir::read_piece follows a file that another process writes, so it returns only whole lines and skips overlong
// ones. for_each_line differs: it passes every line with its number and its end, even an incomplete last line and an
// overlong one. Callers use this to name broken lines and to cut a file after a record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/ids.h"

namespace sinew::report {

struct Line {
  std::string_view text;  // without the line end ("\n" or "\r\n"); only the first megabyte of a line that is too_long
  int64_t number = 0;     // counted from 1
  uint64_t end = 0;       // offset of the byte after the newline
  // true: the line ends in a newline; only the last line of a file may have none, and it may be incomplete
  bool whole = true;
  bool too_long = false;  // true: the line is longer than a megabyte
};

// Calls `visit` for each line that is not empty. A missing file has no lines. Throws DiskError if the file cannot be
// read, or is not a regular file.
//
// If another process replaces the file meanwhile, the old file is read to its end.
void for_each_line(const std::string& path, const std::function<void(const Line&)>& visit);
// Does the same on any disk, for a file that no other process replaces.
void for_each_line(Disk& disk, const std::string& path, const std::function<void(const Line&)>& visit);

// Opens a file that an earlier attempt or another process wrote, and drops the records after `step`. `step_of` returns
// the step of a line, or nullopt if the line has none; such a line is kept or dropped together with the line before it.
// Drops a last line without a newline, unless it has a step and is kept; then adds the newline. The lines that
// `step_of` gets are those that stay, also if an earlier writer still appends meanwhile. Returns the open file, or null
// if there is none. Throws DiskError.
std::unique_ptr<Disk::File> go_on_after(Disk& disk, const std::string& path, Step step,
                                        const std::function<std::optional<int64_t>(std::string_view)>& step_of);

// Returns whether an earlier writer may still have the file open, so that this one must go on with a copy. This is so
// on the disk of a writer of a run directory (base/write_fence.h); there, ends the right of the earlier writers to
// write.
bool must_copy(Disk& disk, const std::string& path);

struct Range {  // of bytes
  uint64_t begin = 0, end = 0;
};
// Replaces the file by a new one that has only these ranges of it, and returns the new file, open at its end. It is
// durable before it gets the name.
std::unique_ptr<Disk::File> keep_ranges(Disk& disk, const std::string& path, const std::vector<Range>& kept);

}  // namespace sinew::report
