#include "data/row_names.h"

#include "data/files.h"
#include "data/text_folder.h"

namespace sinew::data {

RowNames::RowNames(const Table& table, const std::vector<int64_t>& rows) {
  for (const std::string& file : table.files)
    files_.push_back(table.of_texts ? label_of_text(file) + '/' + file_name(file) : file_name(file));
  for (const int64_t row : rows) {
    lines_.push_back(table.of_texts ? 0 : table.lines[static_cast<size_t>(row)]);
    if (files_.size() > 1) file_of_.push_back(static_cast<uint32_t>(table.file_of(row)));
  }
}

std::string RowNames::describe(int64_t sample) const {
  const auto i = static_cast<size_t>(sample);
  const std::string& file = files_[file_of_.empty() ? 0 : file_of_[i]];
  return lines_[i] == 0 ? file : file + ':' + std::to_string(lines_[i]);
}

std::string left_out_text(const Table& table, const Targets& targets) {
  const int64_t skipped = table.skipped + targets.skipped;
  if (skipped == 0) return "";
  return with_commas(skipped) + (skipped == 1 ? " row of " : " rows of ") + file_name(table.name) +
         (skipped == 1 ? " is" : " are") +
         " left out, the first: " + (table.skipped > 0 ? table.first_skipped : targets.first_skipped);
}

}  // namespace sinew::data
