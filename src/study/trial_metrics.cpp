#include "study/trial_metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace sinew::study {
namespace {

using nlohmann::json;

// A loss that is no number stands there as null.
std::optional<double> value_in(const json& record, const std::string& metric) {
  const auto found = record.find(metric);
  if (found == record.end()) return std::nullopt;
  return found->is_number() ? found->get<double>() : std::nan("");
}

}  // namespace

void TrialMetrics::begin_anew() {
  read_ = 0;
  rest_.clear();
  rows_.clear();
  last_.assign(metrics_.size(), std::nan(""));
}

void TrialMetrics::take(const std::string& line, std::vector<Value>& values) {
  const json record = json::parse(line, nullptr, false);
  if (!record.is_object()) return;
  std::optional<double> first;
  for (size_t k = metrics_.size(); k-- > 0;) {
    first = value_in(record, metrics_[k]);
    if (first) last_[k] = *first;
  }
  if (!first) return;
  rows_.push_back(last_);
  values.push_back({count(), *first});
}

std::vector<double> TrialMetrics::at_best(bool least) const {
  if (rows_.empty()) return last_;
  size_t best = 0;
  for (size_t k = 1; k < rows_.size(); ++k) {
    const double value = rows_[k].back(), before = rows_[best].back();
    if (std::isnan(before) || (least ? value < before : value > before)) best = k;
  }
  std::vector<double> values = rows_[best];
  for (size_t k = 0; k < values.size(); ++k) values[k] = std::isnan(values[k]) ? last_[k] : values[k];
  return values;
}

std::vector<TrialMetrics::Value> TrialMetrics::next() {
  if (!disk_.exists(path_)) return {};
  const uint64_t size = disk_.size(path_);
  if (size < read_) begin_anew();
  std::string fresh(size - read_, '\0');
  fresh.resize(disk_.read_at(path_, read_, std::as_writable_bytes(std::span(fresh))));
  read_ += fresh.size();
  rest_ += fresh;
  std::vector<Value> values;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    take(rest_.substr(begin, end - begin), values);
  }
  rest_.erase(0, begin);
  return values;
}

}  // namespace sinew::study
