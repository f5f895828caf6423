// Private to data/: a folder with a sub-folder of texts for each class, read as a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/table_files.h"

namespace sinew::data {

// The format of a folder with a sub-folder of .txt files for each class. Each file is a row with the columns text and
// label; label is the name of the folder in which the file is.
inline constexpr std::string_view kTextFolder = "text_folder";

// Returns the .txt files of a text_folder, sorted by name: those of its sub-folders, or, if these have none, its own.
// Leaves out a sub-folder "unsup" beside others. `path` may also be one such file. Throws Error if there is none.
std::vector<std::string> text_files(const std::string& path);
// Returns whether the folder has a sub-folder with such files.
bool has_text_classes(const std::string& folder);
// Says how many texts are read, and how many other files of their folders are left out.
std::string said_of_texts(const std::string& path, const std::vector<std::string>& files);

// Returns the name of the folder in which the file is. Throws Error if it is not UTF-8.
std::string label_of_text(const std::string& path);
// Makes the row of a file: a line of JSON, which read_jsonl() reads.
TableText text_as_row(const std::string& path, std::vector<std::byte> bytes, const TableRequest& request);

}  // namespace sinew::data
