// Finds the files that a pattern means, as a shell does: data/part-*.csv, data/train-{000000..000123}.tar.
#pragma once

#include <string>
#include <vector>

namespace sinew {

// Returns whether the path is a pattern: it has *, ? or a range in braces, and no file or folder has exactly this name.
bool is_file_pattern(const std::string& path);

// Returns the paths of the files whose names fit the last part of the path, sorted. Only the last part may have * and
// ?. A name that begins with a point fits only a pattern that begins with a point. Throws Error (DATA_FILE_UNREADABLE)
// if the folder cannot be listed.
//
// A range {FIRST..LAST} of whole numbers may be anywhere, and there may be several. It stands for each of its numbers,
// with at least as many digits as FIRST. A pattern with a range names its files one by one, so they are returned in
// this order, and also if they do not exist. Throws Error (DATA_BAD_SOURCE) if it names more than a million files or
// has more than 8 ranges.
std::vector<std::string> files_of_pattern(const std::string& path);

}  // namespace sinew
