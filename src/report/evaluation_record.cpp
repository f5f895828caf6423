// Writes and reads eval-<split>.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "report/report.h"

namespace sinew::report {
namespace {

using nlohmann::json;

constexpr int64_t kMostClasses = 1024, kMostCount = 1'000'000'000'000;  // so that no sum overflows

double quotient(double part, double whole) {
  return whole == 0 ? 0.0 : part / whole;
}

json thresholds_json(const std::vector<ThresholdCounts>& thresholds) {
  json scores = json::array(), right = json::array(), wrong = json::array();
  for (const ThresholdCounts& one : thresholds) {
    scores.push_back(json(json_number(one.score)));
    right.push_back(one.true_positives);
    wrong.push_back(one.false_positives);
  }
  return {{"score", scores}, {"true_positives", right}, {"false_positives", wrong}};
}

// Reads an array of counts. Returns none if one of them is no count.
std::vector<int64_t> counts_of(const json& array) {
  std::vector<int64_t> counts;
  if (!array.is_array()) return {};
  for (const json& one : array) {
    if (!one.is_number_integer() || one < 0 || one > kMostCount) return {};
    counts.push_back(one.get<int64_t>());
  }
  return counts;
}

void read_confusion(const json& document, EvaluationRecord& record) {
  const json* rows = member_of(document, "confusion");
  if (rows == nullptr || !rows->is_array() || rows->size() > static_cast<size_t>(kMostClasses)) return;
  for (const json& row : *rows) {
    const std::vector<int64_t> counts = counts_of(row);
    if (counts.size() != rows->size()) return record.confusion.clear();
    record.confusion.insert(record.confusion.end(), counts.begin(), counts.end());
  }
  record.classes = static_cast<int64_t>(rows->size());
}

void read_thresholds(const json& document, EvaluationRecord& record) {
  const json* thresholds = member_of(document, "thresholds");
  if (thresholds == nullptr) return;
  const json none = json::array();
  const auto array = [&](const char* key) {
    const json* found = member_of(*thresholds, key);
    return found == nullptr || !found->is_array() ? none : *found;
  };
  const json scores = array("score");
  const std::vector<int64_t> right = counts_of(array("true_positives")), wrong = counts_of(array("false_positives"));
  if (right.size() != scores.size() || wrong.size() != scores.size()) return;
  if (!std::ranges::is_sorted(right) || !std::ranges::is_sorted(wrong)) return;
  for (size_t i = 0; i < scores.size(); ++i)
    record.thresholds.push_back({number_in_json(scores[i]).value_or(0), right[i], wrong[i]});
}

}  // namespace

std::vector<ClassQuality> class_qualities(std::span<const int64_t> confusion, int64_t classes) {
  std::vector<ClassQuality> qualities(static_cast<size_t>(classes));
  const auto at = [&](int64_t truth, int64_t guess) { return confusion[static_cast<size_t>(truth * classes + guess)]; };
  for (int64_t c = 0; c < classes; ++c) {
    ClassQuality& one = qualities[static_cast<size_t>(c)];
    for (int64_t other = 0; other < classes; ++other) {
      one.support += at(c, other);
      one.predicted += at(other, c);
    }
    const auto right = static_cast<double>(at(c, c));
    one.precision = quotient(right, static_cast<double>(one.predicted));
    one.recall = quotient(right, static_cast<double>(one.support));
    one.f1 = quotient(2 * right, static_cast<double>(one.support + one.predicted));
  }
  return qualities;
}

std::string name_of_class(const std::vector<std::string>& class_names, size_t index) {
  return index < class_names.size() ? class_names[index] : std::to_string(index);
}

std::string evaluation_json(const EvaluationRecord& record) {
  json metrics = json::object();
  for (const auto& [name, value] : record.metrics) metrics[name] = json(json_number(value));
  json document = {{"part", record.part},
                   {"weights", record.weights},
                   {"data", record.data},
                   {"samples", record.samples},
                   {"metrics", metrics}};
  if (record.step) document["step"] = *record.step;
  if (record.skipped > 0) document["skipped"] = record.skipped;
  if (record.threshold) document["threshold"] = *record.threshold;
  if (!record.class_names.empty()) document["class_names"] = record.class_names;
  if (!record.thresholds.empty()) document["thresholds"] = thresholds_json(record.thresholds);
  if (!record.confusion.empty()) {
    json rows = json::array(), classes = json::array();
    for (int64_t truth = 0; truth < record.classes; ++truth) {
      const auto first = record.confusion.begin() + truth * record.classes;
      rows.push_back(std::vector<int64_t>(first, first + record.classes));
    }
    document["confusion"] = rows;  // one row for each true class, one column for each predicted class
    for (const ClassQuality& one : class_qualities(record.confusion, record.classes))
      classes.push_back({{"name", name_of_class(record.class_names, classes.size())},
                         {"precision", one.precision},
                         {"recall", one.recall},
                         {"f1", one.f1},
                         {"support", one.support}});
    document["classes"] = classes;
  }
  return dump_json(document, 1) + "\n";
}

std::optional<EvaluationRecord> parse_evaluation(std::string_view text) {
  const json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 6; }, false);
  const json* metrics = member_of(document, "metrics");
  if (metrics == nullptr || !metrics->is_object()) return std::nullopt;
  EvaluationRecord record;
  record.part = text_or_empty(document, "part");
  record.weights = text_or_empty(document, "weights");
  record.step = whole_of(document, "step");
  record.samples = whole_of(document, "samples").value_or(0);
  record.skipped = whole_of(document, "skipped").value_or(0);
  if (const json* found = member_of(document, "threshold")) record.threshold = number_in_json(*found);
  for (const auto& [name, value] : metrics->items()) {
    if (const auto number = number_in_json(value)) record.metrics[name] = *number;
  }
  const auto texts = [&](const char* key, std::vector<std::string>& out) {
    const json* array = member_of(document, key);
    if (array == nullptr || !array->is_array()) return;
    for (const json& one : *array) out.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  };
  texts("data", record.data);
  texts("class_names", record.class_names);
  read_confusion(document, record);
  read_thresholds(document, record);
  return record;
}

}  // namespace sinew::report
