#include "data/split_table.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "data/files.h"

namespace sinew::data {
namespace {

struct Groups {
  std::vector<int64_t> of;  // for each row of the targets
  int64_t count = 0, without = 0;
};

// Numbers the groups by their first row. A row without a value is a group of its own.
Groups groups_of(const Column& column, const std::vector<int64_t>& rows) {
  Groups groups;
  std::map<double, int64_t> known;
  for (const int64_t row : rows) {
    const auto at = static_cast<size_t>(row);
    const double value = column.categorical ? column.codes[at] : column.numbers[at];
    const bool missing = column.categorical ? value < 0 : std::isnan(value);
    groups.without += missing ? 1 : 0;
    const auto [place, is_new] = missing ? std::pair(known.end(), true) : known.try_emplace(value, groups.count);
    groups.of.push_back(is_new ? groups.count++ : place->second);
  }
  return groups;
}

std::vector<double> times_of(const Table& table, const Column& column, const std::vector<int64_t>& rows) {
  if (column.categorical) {
    throw Error(
        "DATA_BAD_COLUMN",
        table.name + ": column '" + column.name + "' has neither dates nor numbers, so data.split.by cannot use it",
        "name a column of dates or numbers, or declare it: data.columns.date: ['" + column.name + "']");
  }
  std::vector<double> times;
  for (const int64_t row : rows) {
    times.push_back(column.numbers[static_cast<size_t>(row)]);
    if (!std::isnan(times.back())) continue;
    throw Error("DATA_BAD_CELL", table.place(row) + ": '" + column.name + "' is missing, and data.split.by needs it",
                "fill it in, or remove the row");
  }
  return times;
}

std::string sizes_text(const SplitIndices& splits) {
  const auto text = [](const std::vector<int64_t>& split) { return with_commas(static_cast<int64_t>(split.size())); };
  return text(splits.train) + " rows for training, " + text(splits.val) + " for validation, " + text(splits.test) +
         " for test";
}

}  // namespace

SplitIndices split_table(const Table& table, const Targets& targets, const spec::DataOptions& options,
                         SplitRequest request, std::vector<std::string>& notes) {
  request.size = static_cast<int64_t>(targets.rows.size());
  if (!request.takes_any()) return split_samples(request);
  if (!options.split_group.empty()) {
    const std::string& name = options.split_group;
    const Groups groups = groups_of(*table.find(name), targets.rows);
    request.groups = groups.of;
    const SplitIndices splits = split_samples(request, notes);
    notes.push_back("the splits keep the " + with_commas(groups.count) + " groups of '" + name +
                    "' together: " + sizes_text(splits));
    if (groups.without > 0) {
      notes.push_back(with_commas(groups.without) + " rows have no '" + name + "'; each is a group of its own");
    }
    return splits;
  }
  if (!options.split_by.empty()) {
    const std::vector<double> times = times_of(table, *table.find(options.split_by), targets.rows);
    request.times = times;
    const SplitIndices splits = split_samples(request, notes);
    notes.push_back(
        "the splits follow '" + options.split_by +
        (request.folds > 0 ? "', training uses the rows before its fold: " : "', the latest rows are test data: ") +
        sizes_text(splits));
    return splits;
  }
  if (options.stratify) request.classes = targets.classes;  // empty for a regression
  return split_samples(request, notes);
}

}  // namespace sinew::data
