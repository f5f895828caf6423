// Inside report/: writes and parses the lines of metrics.jsonl and ledger.jsonl.
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

// Does the same as parse_metrics_line, with a general JSON parser. parse_metrics_line calls it for the lines that its
// fast parser does not accept.
std::optional<MetricRecord> parse_metrics_line_slowly(std::string_view line, std::string* why = nullptr);

// Calls `visit` for every record of a file in the format of metrics.jsonl. `broken` as in read_metrics(). Throws
// DiskError if the file cannot be read.
void for_each_record(const std::string& path, std::vector<std::string>* broken,
                     const std::function<void(const MetricRecord&)>& visit);

// The files with the metrics of a run.
inline constexpr const char* kFilesOfMetrics[] = {rundir::kMetricsFile, rundir::kLoggedMetricsFile};

std::optional<int64_t> step_of_line(std::string_view line);  // reads a line of either file

}  // namespace sinew::report
