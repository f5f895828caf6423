#include "data/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "data/files.h"

namespace sinew::data {
namespace {

constexpr size_t kFewValues = 20;      // auto: up to so many whole numbers are classes
constexpr size_t kMostClasses = 1000;  // more are a slip, not a wish

std::string shortest(double value) {
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

// Different values, sorted; stops looking beyond `most`.
std::set<double> different(const Column& column, size_t most) {
  std::set<double> values;
  for (const double value : column.numbers) {
    if (!std::isnan(value)) values.insert(value);
    if (values.size() > most) break;
  }
  return values;
}

void decide_task(const Column& column, const std::string& task, TargetRules& rules) {
  if (task != "auto") {
    rules.task = task == "regression" ? Task::regression : Task::classification;
    return;
  }
  const std::string name = "'" + column.name + "'";
  if (column.categorical) {
    rules.reason = "classification: the values of " + name + " are words";
    return;
  }
  const auto values = different(column, kFewValues);
  const bool whole = std::all_of(values.begin(), values.end(), [](double value) { return value == std::floor(value); });
  const bool few = values.size() <= kFewValues && values.size() * 2 <= column.numbers.size();
  rules.task = whole && few ? Task::classification : Task::regression;
  rules.reason = whole && few
                     ? "classification: " + name + " has only the whole numbers " + shortest(*values.begin()) + " to " +
                           shortest(*values.rbegin()) + " (" + std::to_string(values.size()) + " different)"
                 : whole ? "regression: the values of " + name + " are whole numbers, but too many for classes"
                         : "regression: the values of " + name + " are numbers with fractions";
}

[[noreturn]] void too_many(const Table& table, const std::string& column, const std::string& count) {
  throw Error(table.name + ": the target '" + column + "' has " + count + " different values, too many for classes",
              "set data.task: regression, or check data.columns.target");
}

}  // namespace

TargetRules decide_target(const Table& train, const std::string& name, const std::string& task) {
  const Column* column = train.find(name);
  SINEW_CHECK(column != nullptr, name);
  TargetRules rules;
  rules.column = name;
  rules.words = column->categorical;
  const bool empty = rules.words ? column->categories.empty() : different(*column, 1).empty();
  if (empty)
    throw Error(train.name + ": the target '" + name + "' has no value in any row", "check data.columns.target");
  decide_task(*column, task, rules);
  if (rules.task == Task::regression) return rules;
  if (rules.words) {
    rules.class_names = column->categories;
    sort_names(rules.class_names);
    const size_t count = rules.class_names.size();
    if (count > kMostClasses || (count > 10 && count > column->codes.size() / 2)) {
      too_many(train, name, with_commas(static_cast<int64_t>(count)));
    }
    for (size_t i = 0; i < count; ++i) rules.words_to_class[rules.class_names[i]] = static_cast<int64_t>(i);
  } else {
    const auto values = different(*column, kMostClasses);
    if (values.size() > kMostClasses) too_many(train, name, "more than " + std::to_string(kMostClasses));
    rules.numbers_to_class.assign(values.begin(), values.end());
    for (const double value : values) rules.class_names.push_back(shortest(value));
  }
  if (rules.class_names.size() == 1) {
    throw Error(train.name + ": the target '" + name + "' is '" + rules.class_names[0] +
                    "' in every row: there is nothing to tell apart",
                "check data.columns.target");
  }
  return rules;
}

Targets read_targets(const Table& table, const TargetRules& rules, bool skip) {
  const Column* column = table.find(rules.column);
  SINEW_CHECK(column != nullptr && column->categorical == rules.words, rules.column);
  std::vector<int64_t> class_of_code;
  for (const std::string& word : column->categories) {
    const auto found = rules.words_to_class.find(word);
    class_of_code.push_back(found == rules.words_to_class.end() ? -1 : found->second);
  }
  Targets targets;
  const auto class_of = [&](size_t row) -> int64_t {
    if (rules.words) return class_of_code[static_cast<size_t>(column->codes[row])];
    const auto& known = rules.numbers_to_class;
    const auto found = std::lower_bound(known.begin(), known.end(), column->numbers[row]);
    return found != known.end() && *found == column->numbers[row] ? found - known.begin() : -1;
  };
  for (int64_t row = 0; row < table.rows(); ++row) {
    const auto i = static_cast<size_t>(row);
    const bool missing = rules.words ? column->codes[i] < 0 : std::isnan(column->numbers[i]);
    const int64_t target = missing || rules.task == Task::regression ? 0 : class_of(i);
    if (missing || target < 0) {
      const std::string value = missing       ? ""
                                : rules.words ? column->categories[static_cast<size_t>(column->codes[i])]
                                              : shortest(column->numbers[i]);
      const std::string what =
          table.place(row) + ": " +
          (missing ? "the target '" + rules.column + "' is missing"
                   : "'" + value + "' as '" + rules.column + "' does not occur in the training data");
      if (!skip) throw Error(what, "fill it in, or leave such lines out with data.on_corrupt: skip");
      if (targets.skipped++ == 0) targets.first_skipped = what;
      continue;
    }
    targets.rows.push_back(row);
    if (rules.task == Task::regression) {
      targets.numbers.push_back(static_cast<float>(column->numbers[i]));
    } else {
      targets.classes.push_back(target);
    }
  }
  return targets;
}

}  // namespace sinew::data
