// One line of metrics.jsonl or ledger.jsonl: writing it and taking it apart again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::report {

// Appends {"step":10,"samples":640,"time":1763697600.125,"train/loss":0.5} and a newline.
void append_metrics_line(std::string& out, int64_t step, int64_t samples, double wall_seconds, const Metrics& values);
void append_ledger_line(std::string& out, int64_t step, Digest digest);

// parse_metrics_line by a general JSON parser: slower, and the judge of what the fast one does not take.
std::optional<MetricRecord> parse_metrics_line_slowly(std::string_view line, std::string* why = nullptr);

std::optional<int64_t> step_of_line(std::string_view line);  // of either file

}  // namespace sinew::report
