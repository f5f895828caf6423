#include "report/curves.h"

#include <algorithm>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "report/metric_lines.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

// Limits for files that may come from elsewhere. A page must not take the memory or the hours of its machine.
constexpr size_t kMostMetrics = 400;
constexpr uint64_t kMostMetricBytes = uint64_t{4} << 30;
constexpr uint64_t kMostEvaluationBytes = uint64_t{8} << 20;

// Returns how many values are left out, because there are too many metrics.
size_t add_record(RunCurves& curves, const MetricRecord& record) {
  size_t left_out = 0;
  for (const auto& [name, value] : record.values) {
    auto found = curves.by_metric.find(name);
    if (found == curves.by_metric.end()) {
      if (curves.by_metric.size() >= kMostMetrics) {
        ++left_out;
        continue;
      }
      found = curves.by_metric.try_emplace(name).first;
    }
    found->second.values.add({static_cast<double>(record.step), value});
    found->second.last = value;
    found->second.last_step = std::max(found->second.last_step, record.step);
  }
  return left_out;
}

}  // namespace

RunCurves read_curves(const std::string& directory) {
  RunCurves curves;
  size_t left_out = 0;
  for (const char* file : kFilesOfMetrics) {
    try {
      const std::string path = rundir::file_in(directory, file);
      if (system_disk().exists(path) && system_disk().size(path) > kMostMetricBytes) {
        curves.trouble = std::string(file) + " is too large to be drawn";
        continue;
      }
      for_each_record(path, nullptr, [&](const MetricRecord& record) { left_out += add_record(curves, record); });
    } catch (const Error& error) {
      curves.trouble = error.what();
    }
  }
  if (left_out > 0)
    curves.trouble = "the run has more than " + std::to_string(kMostMetrics) + " metrics; these are the first";
  return curves;
}

std::vector<EvaluationRecord> read_evaluations(const std::string& directory) {
  std::vector<EvaluationRecord> found;
  for (const char* split : {"val", "test"}) {
    const std::string path = rundir::file_in(directory, rundir::evaluation_file(split));
    try {
      if (!system_disk().exists(path) || system_disk().size(path) > kMostEvaluationBytes) continue;
      if (auto record = parse_evaluation(sinew::read_text(system_disk(), path))) found.push_back(std::move(*record));
    } catch (const Error&) {
    }
  }
  return found;
}

std::optional<BestStep> best_step_of(const RunSummary& run) {
  if (run.monitored) return run.monitored;
  const auto option = [&](const char* key) {
    const auto found = run.options.find(key);
    return found == run.options.end() ? std::string() : found->second;
  };
  std::string metric = option("checkpoint.monitor");
  if (!run.best.contains(metric)) metric = "val/loss";
  if (!run.best.contains(metric) || !run.best_step.contains(metric)) return std::nullopt;
  return BestStep{metric, run.best.at(metric), run.best_step.at(metric)};
}

}  // namespace sinew::report
