#include "study/trial_metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"

namespace sinew::study {
namespace {

using Json = nlohmann::ordered_json;

// Treats an infinite value as NaN. A training that overflows must never be the best one of a search that maximises.
std::optional<double> value_in(const Json& record, const std::string& metric) {
  const auto found = record.find(metric);
  if (found == record.end()) return std::nullopt;
  const auto value = number_in_json(*found);
  return value && std::isfinite(*value) ? *value : std::nan("");
}

}  // namespace

TrialMetrics::TrialMetrics(const std::string& run_directory, std::vector<std::string> metrics)
    : file_(rundir::file_in(run_directory, rundir::kMetricsFile)), metrics_(std::move(metrics)) {
  clear();
}

void TrialMetrics::clear() {
  rows_.clear();
  last_.assign(metrics_.size(), std::nan(""));
}

void TrialMetrics::read_line(const std::string& line, std::vector<Evaluation>& evaluations) {
  const Json record = Json::parse(line, nullptr, false);
  if (!record.is_object()) return;
  std::optional<double> first;
  for (size_t k = metrics_.size(); k-- > 0;) {
    first = value_in(record, metrics_[k]);
    if (first) last_[k] = *first;
  }
  if (!first) return;
  rows_.push_back(last_);
  evaluations.push_back({count(), *first});
}

std::vector<double> TrialMetrics::at_best(bool lower_is_better) const {
  if (rows_.empty()) return last_;
  size_t best = 0;
  for (size_t k = 1; k < rows_.size(); ++k) {
    const double value = rows_[k].back(), before = rows_[best].back();
    if (std::isnan(before) || (lower_is_better ? value < before : value > before)) best = k;
  }
  std::vector<double> values = rows_[best];
  // The test measures the best model when a training ends. A training that was prolonged measures it once more.
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(values[k]) || metrics_[k].starts_with("test/")) values[k] = last_[k];
  }
  return values;
}

std::vector<TrialMetrics::Evaluation> TrialMetrics::next() {
  const auto news = file_.next();
  if (news.cut_back) clear();
  std::vector<Evaluation> evaluations;
  for (const std::string& line : news.lines) read_line(line, evaluations);
  return evaluations;
}

}  // namespace sinew::study
