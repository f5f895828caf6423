#include "cli/trial_metric.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace sinew::cli {
namespace {

using nlohmann::json;

// A loss that is no number stands there as null.
std::optional<double> value_in(const json& record, const std::string& metric) {
  const auto found = record.find(metric);
  if (found == record.end()) return std::nullopt;
  return found->is_number() ? found->get<double>() : std::nan("");
}

}  // namespace

std::vector<TrialMetric::Value> TrialMetric::next() {
  if (!disk_.exists(path_)) return {};
  const uint64_t size = disk_.size(path_);
  if (size < read_) {
    read_ = 0;
    number_ = 0;
    rest_.clear();
  }
  std::string fresh(size - read_, '\0');
  fresh.resize(disk_.read_at(path_, read_, std::as_writable_bytes(std::span(fresh))));
  read_ += fresh.size();
  rest_ += fresh;
  std::vector<Value> values;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const json record = json::parse(rest_.substr(begin, end - begin), nullptr, false);
    if (!record.is_object()) continue;
    if (const auto value = value_in(record, metric_)) values.push_back({++number_, *value});
  }
  rest_.erase(0, begin);
  return values;
}

}  // namespace sinew::cli
