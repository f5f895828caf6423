// Reads the columns of a table back from the encoded inputs of its samples.
#include <algorithm>

#include "train/sanity.h"

namespace sinew::train::sanity {

std::vector<float> column_values(const data::Batch& batch, const data::InputGroup& group) {
  const int64_t width = element_count(batch.input.shape) / std::max<int64_t>(1, batch.count());
  std::vector<float> values;
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* first = batch.input.as<float>() + row * width + group.first;
    const float* best = std::max_element(first, first + group.count);
    values.push_back(group.count == 1 ? *first : *best > 0 ? static_cast<float>(best - first) : -1.0F);
  }
  return values;
}

std::string column_of(const data::DataInfo& info, const data::InputGroup& group) {
  const auto at = static_cast<size_t>(group.first);
  if (at >= info.input_names.size()) return "input " + std::to_string(group.first);
  const std::string& input = info.input_names[at];
  std::string longest;
  for (const data::ColumnFacts& column : info.columns) {
    const bool made_of =
        input == column.name || input.starts_with(column.name + "=") || input.starts_with(column.name + ".");
    if (made_of && column.name.size() > longest.size()) longest = column.name;
  }
  return longest.empty() ? input : longest;
}

bool is_date(const data::DataInfo& info, const std::string& column) {
  return std::ranges::any_of(
      info.columns, [&](const data::ColumnFacts& known) { return known.name == column && known.kind == "date"; });
}

std::vector<double> target_values(const data::Batch& batch) {
  const int64_t width = element_count(batch.target.shape) / std::max<int64_t>(1, batch.count());
  std::vector<double> targets;
  for (int64_t row = 0; row < batch.count(); ++row) {
    targets.push_back(batch.target.dtype == DType::i64 ? static_cast<double>(batch.target.as<int64_t>()[row * width])
                                                       : static_cast<double>(batch.target.as<float>()[row * width]));
  }
  return targets;
}

bool is_table(const data::DataInfo& info) {
  return info.input_shape.size() == 1 && info.input_dtype == DType::f32 && info.target_shape.empty();
}

}  // namespace sinew::train::sanity
