// A line of a command's output: metrics, or something for people.
//
// Pure. A metric line is a JSON object that has a "step", or holds nothing but numbers; anything else is text. NaN and
// Infinity as Python writes them are numbers, too. Names without a group get one by the field's rule: val_loss and
// eval_loss are val/loss, test_x is test/x, anything else train/x; {"val": {"loss": 1}} is val/loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::jobs {

inline constexpr size_t kLongestLine = 1 << 20;  // a longer one is text, whatever it holds

struct MetricLine {
  enum class Kind { text, metrics, broken };  // broken: begins like a metric line and can not be read
  Kind kind = Kind::text;
  std::optional<int64_t> step;
  std::optional<double> epoch;
  std::optional<int64_t> samples;
  report::Metrics values;
  std::string why;  // broken
};

MetricLine read_metric_line(std::string_view line);

// "val_loss" -> "val/loss". "" where no metric can be called so.
std::string metric_name(std::string_view given);

}  // namespace sinew::jobs
