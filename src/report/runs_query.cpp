#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/csv_field.h"
#include "base/error.h"
#include "base/number_text.h"
#include "report/report.h"
#include "report/table.h"
#include "report/text_format.h"
#include "spec/spec.h"

namespace sinew::report {
namespace {

constexpr std::string_view kLast = "last:", kStarted = "started";

// The value of one key of one run.
struct RunValue {
  std::string text;  // exact
  std::optional<double> number;
};
using Found = std::optional<RunValue>;

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

Found number_value(double number) {
  return RunValue{number_text(number), number};
}

Found text_value(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return RunValue{text, number_of(text)};
}

struct Field {
  const char* key;
  Found (*value)(const RunSummary& run);
};

constexpr Field kFields[] = {
    {"run", [](const RunSummary& run) { return text_value(run.id); }},
    {"job", [](const RunSummary& run) { return text_value(run.job); }},
    {"status", [](const RunSummary& run) { return text_value(run.status); }},
    {"started",
     [](const RunSummary& run) {
       return run.started_wall_seconds > 0 ? text_value(utc_iso(run.started_wall_seconds)) : Found();
     }},
    {"took", [](const RunSummary& run) { return number_value(run.seconds); }},
    {"steps", [](const RunSummary& run) { return number_value(static_cast<double>(run.steps)); }},
    {"samples", [](const RunSummary& run) { return number_value(static_cast<double>(run.samples)); }},
    {"objective_met",
     [](const RunSummary& run) {
       return run.objective_met ? text_value(*run.objective_met ? "true" : "false") : Found();
     }},
    {"digest", [](const RunSummary& run) { return text_value(run.digest); }},
    {"directory", [](const RunSummary& run) { return text_value(run.directory); }},
};

Found metric_in(const Metrics& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? Found() : number_value(found->second);
}

Found value_of(const RunSummary& run, const std::string& key) {
  for (const Field& field : kFields) {
    if (key == field.key) return field.value(run);
  }
  if (key.starts_with(kLast)) return metric_in(run.last, key.substr(kLast.size()));
  if (const Found best = metric_in(run.best, key)) return best;
  const auto option = run.options.find(key);
  return option == run.options.end() ? Found() : text_value(option->second);
}

// "val/loss" of "last:val/loss"; a key without that word as it is.
std::string metric_of(const std::string& key) {
  return key.starts_with(kLast) ? key.substr(kLast.size()) : key;
}

bool is_metric(const std::vector<RunSummary>& runs, const std::string& key) {
  return std::ranges::any_of(runs, [&](const RunSummary& run) { return run.last.contains(metric_of(key)); });
}

std::vector<std::string> known_keys(const std::vector<RunSummary>& runs) {
  std::set<std::string> keys;
  for (const Field& field : kFields) keys.insert(field.key);
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.last) keys.insert({name, std::string(kLast) + name});
    for (const auto& [name, value] : run.options) keys.insert(name);
  }
  return {keys.begin(), keys.end()};
}

void check_key(const std::vector<RunSummary>& runs, const std::string& key) {
  const std::vector<std::string> known = known_keys(runs);
  if (runs.empty() || std::ranges::binary_search(known, key)) return;
  const std::string meant = spec::did_you_mean(key, known);
  throw UsageError("OPTION_INVALID",
                   "no run has '" + key + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?"),
                   "give a metric (val/loss), an option (optimizer.lr), or run, job, status, started, took, steps, "
                   "samples, objective_met, digest or directory");
}

struct RunCondition {
  enum class Compare { equal, different, less, at_most, more, at_least };
  std::string key;
  Compare compare = Compare::equal;
  std::string value;
};

RunCondition condition_of(std::string_view text) {
  using Compare = RunCondition::Compare;
  constexpr std::pair<std::string_view, Compare> kWords[] = {
      {"<=", Compare::at_most}, {">=", Compare::at_least}, {"!=", Compare::different}, {"==", Compare::equal},
      {"=", Compare::equal},    {"<", Compare::less},      {">", Compare::more}};
  const auto trimmed = [](std::string_view part) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    return first == std::string_view::npos ? std::string() : std::string(part.substr(first, last - first + 1));
  };
  const size_t at = text.find_first_of("<>=!");
  for (const auto& [word, compare] : kWords) {
    if (at == std::string_view::npos || !text.substr(at).starts_with(word)) continue;
    RunCondition condition{trimmed(text.substr(0, at)), compare, trimmed(text.substr(at + word.size()))};
    if (condition.key.empty() || condition.value.empty()) break;
    if (condition.key == kStarted) std::ranges::replace(condition.value, ' ', 'T');  // as the table shows it
    return condition;
  }
  throw UsageError("OPTION_INVALID", "'" + std::string(text) + "' is no condition",
                   "write a key, one of = != < <= > >=, and a value: --where 'val/loss<0.3' --where status=done");
}

// "run,val/loss" are two keys.
std::vector<std::string> keys_in(const std::string& list) {
  std::vector<std::string> keys;
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    keys.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return keys;
}

// -1, 0 or 1. NaN is greater than every number.
int order_of(const RunValue& a, const RunValue& b) {
  if (!a.number || !b.number) return a.text < b.text ? -1 : a.text > b.text ? 1 : 0;
  const bool a_nan = std::isnan(*a.number), b_nan = std::isnan(*b.number);
  if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
  return *a.number < *b.number ? -1 : *a.number > *b.number ? 1 : 0;
}

// Refuses to ask for the order of texts: "5ep" < "40ep" has no meaning as text. The text of a time is in order.
void check_order(const RunCondition& condition, const RunValue& value) {
  using Compare = RunCondition::Compare;
  const bool asks = condition.compare != Compare::equal && condition.compare != Compare::different;
  if (!asks || condition.key == kStarted || (value.number && number_of(condition.value))) return;
  throw UsageError(
      "OPTION_INVALID",
      value.number ? "'" + condition.value + "' is no number, but " + condition.key + " is"
                   : condition.key + " is '" + value.text + "', which has no order",
      "compare numbers (took is in seconds) and started with <, <=, > and >=, and other values with = and !=");
}

bool holds(const RunSummary& run, const RunCondition& condition) {
  using Compare = RunCondition::Compare;
  const Found found = value_of(run, condition.key);
  if (!found) return condition.compare == Compare::different;
  check_order(condition, *found);
  const int order = order_of(*found, {condition.value, number_of(condition.value)});
  const bool nan = found->number && std::isnan(*found->number);
  switch (condition.compare) {
    case Compare::equal: return order == 0;
    case Compare::different: return order != 0;
    case Compare::less: return !nan && order < 0;
    case Compare::at_most: return !nan && order <= 0;
    case Compare::more: return !nan && order > 0;
    case Compare::at_least: return !nan && order >= 0;
  }
  return false;
}

void sort_runs(std::vector<RunSummary>& runs, const std::string& key, bool reverse) {
  const bool descending = (is_metric(runs, key) && !lower_is_better(metric_of(key))) != reverse;
  std::stable_sort(runs.begin(), runs.end(), [&](const RunSummary& a, const RunSummary& b) {
    const Found left = value_of(a, key), right = value_of(b, key);
    if (!left || !right) return left.has_value() && !right.has_value();
    const int order = order_of(*left, *right);
    const bool nan = (left->number && std::isnan(*left->number)) || (right->number && std::isnan(*right->number));
    return descending && !nan ? order > 0 : order < 0;
  });
}

std::vector<std::string> all_keys(const std::vector<RunSummary>& runs) {
  std::vector<std::string> keys;
  for (const Field& field : kFields) keys.emplace_back(field.key);
  std::set<std::string> metrics;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.last) metrics.insert(name);
  }
  for (const std::string& name : metrics) {
    keys.push_back(name);
    keys.push_back(std::string(kLast) + name);
  }
  for (const std::string& key : differing_options(runs)) keys.push_back(key);
  return keys;
}

}  // namespace

std::vector<std::string> differing_options(const std::vector<RunSummary>& runs) {
  std::map<std::string, std::map<std::string, size_t>> counts;  // key -> value -> number of runs
  for (const RunSummary& run : runs) {
    for (const auto& [key, value] : run.options) ++counts[key][value];
  }
  std::vector<std::string> differing;
  for (const auto& [key, values] : counts) {
    if (values.begin()->second < runs.size()) differing.push_back(key);
  }
  return differing;
}

std::vector<RunSummary> select_runs(std::vector<RunSummary> runs, const RunQuery& query) {
  std::vector<RunCondition> conditions;
  for (const std::string& text : query.where) conditions.push_back(condition_of(text));
  for (const RunCondition& condition : conditions) check_key(runs, condition.key);
  if (!query.sort.empty()) check_key(runs, query.sort);
  std::erase_if(runs, [&](const RunSummary& run) {
    return !std::ranges::all_of(conditions, [&](const RunCondition& condition) { return holds(run, condition); });
  });
  if (!query.sort.empty()) {
    sort_runs(runs, query.sort, query.reverse);
  } else if (query.reverse) {
    std::ranges::reverse(runs);
  }
  if (query.limit > 0 && runs.size() > static_cast<size_t>(query.limit)) runs.resize(static_cast<size_t>(query.limit));
  return runs;
}

std::string runs_table_of(const std::vector<RunSummary>& runs, const std::string& list, int columns) {
  const bool unreadable = std::ranges::any_of(runs, [](const RunSummary& run) { return !run.problems.empty(); });
  const char* note =
      unreadable ? "(!) some files of these runs cannot be read; 'sinew runs show RUN' names them\n" : "";
  if (list.empty()) return runs_table(runs, columns) + note;
  const std::vector<std::string> keys = keys_in(list);
  for (const std::string& key : keys) check_key(runs, key);
  std::vector<Column> table;
  for (const std::string& key : keys) {
    Column column{key, {}, true, 0, 6};
    const bool metric = is_metric(runs, key);
    for (const RunSummary& run : runs) {
      const Found found = value_of(run, key);
      if (found && !found->number) column.right = false;
      column.cells.push_back(!found ? "-" : metric && found->number ? short_number(*found->number) : found->text);
    }
    table.push_back(std::move(column));
  }
  return table_text(std::move(table), columns) + note;
}

std::string runs_csv(const std::vector<RunSummary>& runs, const std::string& list) {
  std::vector<std::string> keys = keys_in(list);
  for (const std::string& key : keys) check_key(runs, key);
  if (keys.empty()) keys = all_keys(runs);
  std::string out;
  for (size_t i = 0; i < keys.size(); ++i) out += (i == 0 ? "" : ",") + csv_field(keys[i]);
  out += "\n";
  for (const RunSummary& run : runs) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const Found found = value_of(run, keys[i]);
      out += (i == 0 ? "" : ",") + (found ? csv_field(found->text) : "");
    }
    out += "\n";
  }
  return out;
}

}  // namespace sinew::report
