// Inside report/: reads what the charts of a run are made of.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plot/plot.h"
#include "report/report.h"

namespace sinew::report {

// The summary of a run that ends now with `outcome`; if that is null, as report.json and the lock say.
std::optional<RunSummary> read_run(const std::string& directory, const rundir::Outcome* outcome);

struct MetricCurve {
  plot::Thinner values;
  double last = 0;
  int64_t last_step = 0;
};
struct RunCurves {
  std::map<std::string, MetricCurve> by_metric;
  std::string trouble;  // a sentence, if metrics are missing here; else empty
};
// Reads metrics.jsonl with bounded memory, however long it is.
RunCurves read_curves(const std::string& directory);

// Reads eval-val.json and eval-test.json, those that exist. A file that is not as it should be counts as missing.
std::vector<EvaluationRecord> read_evaluations(const std::string& directory);

// The best step by the monitored metric so far.
std::optional<BestStep> best_step_of(const RunSummary& run);

// A chart, and a name for its file: "loss", "confusion-test".
struct NamedChart {
  std::string name;
  plot::Chart chart;
  bool detail = false;  // true: a page need not show it at once
};
// The charts of the metrics, the important ones first. Throws Error if `wanted` names a metric that is not there.
std::vector<NamedChart> metric_charts(const RunSummary& run, const RunCurves& curves,
                                      const std::vector<std::string>& wanted);
// The confusion matrices, the curves of precision and recall, and the ROC curves.
std::vector<NamedChart> evaluation_charts(const std::vector<EvaluationRecord>& evaluations);
// Returns whether the run measured classes, so that evaluations of it have a confusion matrix.
bool measures_classes(const RunSummary& run);

}  // namespace sinew::report
