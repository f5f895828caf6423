// Private to data/: the names of a table's samples, by which a user finds their rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/table.h"
#include "data/target.h"

namespace sinew::data {

class RowNames {
 public:
  RowNames() = default;
  RowNames(const Table& table, const std::vector<int64_t>& rows);
  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  std::string describe(int64_t sample) const;  // "train.csv:18", or "calm/7.txt" of a text_folder

 private:
  std::vector<std::string> files_;
  std::vector<int64_t> lines_;     // 0: the file is the sample
  std::vector<uint32_t> file_of_;  // the file of each sample; empty if there is one file
};

// "3 rows of t.csv are left out, the first: t.csv:4: ...", or "" if all rows became samples.
std::string left_out_text(const Table& table, const Targets& targets);

}  // namespace sinew::data
