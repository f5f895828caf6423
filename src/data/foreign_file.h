// Private to data/: recognises files that are no data that Sinew reads, and says what they are and what helps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sinew::data {

struct ForeignFile {
  std::string what;  // "a video"
  std::string cure;  // one sentence, without a full stop
};
// Recognises a file by its name, or by its first bytes; `head` may be empty. Returns nullopt for all other files.
std::optional<ForeignFile> foreign_file(const std::string& path, std::string_view head);

// Throws Error if the file is such a file.
void refuse_foreign_file(const std::string& path, std::string_view head);

// Throws Error if the content is no table although the name of the file may say so: JSON, a web page, a workbook.
void refuse_foreign_table(const std::string& path, std::string_view head);

// Returns whether the text begins with a JSON object that ends with its line.
bool is_json_lines(std::string_view head);

}  // namespace sinew::data
