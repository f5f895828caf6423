#include "data/target.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/number_text.h"
#include "data/encoding.h"
#include "data/files.h"

namespace sinew::data {
namespace {

constexpr size_t kFewValues = 20;     // auto: up to this many different whole numbers are classes
constexpr size_t kMaxClasses = 1000;  // more are more likely a mistake than classes

// Returns the different values, sorted. Stops when there are more than `limit`.
std::set<double> different(const Column& column, size_t limit) {
  std::set<double> values;
  for (const double value : column.numbers) {
    if (!std::isnan(value)) values.insert(value);
    if (values.size() > limit) break;
  }
  return values;
}

void decide_task(const Column& column, const std::string& task, TargetSchema& schema) {
  if (task != "auto") {
    schema.task = task == "regression" ? Task::regression : Task::classification;
    return;
  }
  const std::string name = "'" + column.name + "'";
  if (column.categorical) {
    schema.reason = "classification: the values of " + name + " are words";
    if (column.reason.ends_with("codes")) schema.reason += ": " + column.reason;
    return;
  }
  const auto values = different(column, kFewValues);
  const bool whole = std::all_of(values.begin(), values.end(), [](double value) { return value == std::floor(value); });
  const bool few = values.size() <= kFewValues && values.size() * 2 <= column.numbers.size();
  schema.task = whole && few ? Task::classification : Task::regression;
  schema.reason = whole && few ? "classification: " + name + " has only the whole numbers " +
                                     number_text(*values.begin()) + " to " + number_text(*values.rbegin()) + " (" +
                                     std::to_string(values.size()) + " different)"
                  : whole ? "regression: the values of " + name + " are whole numbers, but too many for classes"
                          : "regression: the values of " + name + " are numbers with fractions";
}

[[noreturn]] void too_many(const Table& table, const Column& column, const std::string& count) {
  throw Error(
      "DATA_TOO_MANY_CLASSES",
      table.name + ": the target '" + column.name + "' has " + count + " different values, too many for classes",
      column.categorical ? "predict another column (data.columns.target): words are classes, which must be few"
                         : "set data.task: regression, or check data.columns.target");
}

}  // namespace

TargetSchema infer_target(const Table& train, const std::string& name, const std::string& task) {
  const Column* column = train.find(name);
  SINEW_CHECK(column != nullptr, name);
  TargetSchema schema;
  schema.column = name;
  schema.categorical = column->categorical;
  schema.cells = column->format;
  const bool empty = schema.categorical ? column->categories.empty() : different(*column, 1).empty();
  if (empty) {
    throw Error("DATA_BAD_COLUMN", train.name + ": the target '" + name + "' has no value in any row",
                "check data.columns.target");
  }
  decide_task(*column, task, schema);
  if (schema.task == Task::regression) return schema;
  if (schema.categorical) {
    schema.class_names = column->categories;
    sort_names(schema.class_names);
    const size_t count = schema.class_names.size();
    if (count > kMaxClasses || (count > 10 && count > column->codes.size() / 2)) {
      too_many(train, *column, with_commas(static_cast<int64_t>(count)));
    }
    for (size_t i = 0; i < count; ++i) schema.class_of_word[schema.class_names[i]] = static_cast<int64_t>(i);
  } else {
    const auto values = different(*column, kMaxClasses);
    if (values.size() > kMaxClasses) too_many(train, *column, "more than " + std::to_string(kMaxClasses));
    schema.class_values.assign(values.begin(), values.end());
    for (const double value : values) schema.class_names.push_back(number_text(value));
  }
  if (schema.class_names.size() == 1) {
    throw Error("DATA_BAD_COLUMN",
                train.name + ": the target '" + name + "' is '" + schema.class_names[0] +
                    "' in every row, so there is nothing to predict",
                "check data.columns.target");
  }
  return schema;
}

Targets read_targets(const Table& table, const TargetSchema& schema, bool skip) {
  const Column* column = table.find(schema.column);
  SINEW_CHECK(column != nullptr && column->categorical == schema.categorical, schema.column);
  std::vector<int64_t> class_of_code;
  for (const std::string& word : column->categories) {
    const auto found = schema.class_of_word.find(word);
    class_of_code.push_back(found == schema.class_of_word.end() ? -1 : found->second);
  }
  Targets targets;
  const auto class_of = [&](size_t row) -> int64_t {
    if (schema.categorical) return class_of_code[static_cast<size_t>(column->codes[row])];
    const auto& known = schema.class_values;
    const auto found = std::lower_bound(known.begin(), known.end(), column->numbers[row]);
    return found != known.end() && *found == column->numbers[row] ? found - known.begin() : -1;
  };
  for (int64_t row = 0; row < table.rows(); ++row) {
    const auto i = static_cast<size_t>(row);
    const bool missing = schema.categorical ? column->codes[i] < 0 : std::isnan(column->numbers[i]);
    const int64_t target = missing || schema.task == Task::regression ? 0 : class_of(i);
    if (missing || target < 0) {
      const std::string value = missing              ? ""
                                : schema.categorical ? column->categories[static_cast<size_t>(column->codes[i])]
                                                     : number_text(column->numbers[i]);
      const std::string what =
          table.place(row) + ": " +
          (missing ? "the target '" + schema.column + "' is missing"
                   : "the target '" + schema.column + "' is '" + value + "', which training rows do not have");
      if (!skip) {
        throw missing
            ? Error("DATA_BAD_TARGET", what,
                    "fill it in, or leave such lines out with data.on_corrupt: skip; a class cannot have the name "
                    "None, NA or null, because such cells count as missing")
            : Error("DATA_UNKNOWN_CLASS", what, "correct it, or leave such lines out with data.on_corrupt: skip");
      }
      if (targets.skipped++ == 0) targets.first_skipped = what;
      continue;
    }
    targets.rows.push_back(row);
    if (schema.task == Task::regression) {
      targets.rounding.add(column->numbers[i]);
      targets.numbers.push_back(static_cast<float>(column->numbers[i]));
    } else {
      targets.classes.push_back(target);
    }
  }
  return targets;
}

}  // namespace sinew::data
