// Parses a line of a command's output, which is either metrics or text.
//
// The parser is pure. A metric line is a JSON object that has a "step" or contains only numbers; any other line is
// text. NaN and Infinity, as Python writes them, count as numbers. A name without a group gets one by convention:
// val_loss and eval_loss become val/loss, test_x becomes test/x, and any other name becomes train/x. The metric {"val":
// {"loss": 1}} has the name val/loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::jobs {

inline constexpr size_t kLongestLine = 1 << 20;  // a longer line is text, whatever it contains

struct MetricLine {
  enum class Kind { text, metrics, broken };  // broken: starts like a metric line but cannot be parsed
  Kind kind = Kind::text;
  std::optional<int64_t> step;
  std::optional<double> epoch;
  std::optional<int64_t> samples;
  report::Metrics values;
  std::string why;  // broken: the problem
};

MetricLine read_metric_line(std::string_view line);

// Returns the name with its group: "val_loss" becomes "val/loss". Returns an empty string if no metric can have this
// name.
std::string metric_name(std::string_view given);

}  // namespace sinew::jobs
