// Finds the files that a pattern means, as a shell does: data/part-*.csv.
#pragma once

#include <string>
#include <vector>

namespace sinew {

// Returns whether the path is a pattern: it has * or ?, and no file or folder has exactly this name.
bool is_file_pattern(const std::string& path);

// Returns the paths of the files whose names fit the last part of the path, sorted. Only the last part may have * and
// ?. A name that begins with a point fits only a pattern that begins with a point. Throws Error (DATA_FILE_UNREADABLE)
// if the folder cannot be listed.
std::vector<std::string> files_of_pattern(const std::string& path);

}  // namespace sinew
