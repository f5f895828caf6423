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
// Reads metrics.jsonl and mlflow.jsonl with bounded memory, however long they are.
RunCurves read_curves(const std::string& directory);

// Reads eval-val.json and eval-test.json, those that exist. A file that is not as it should be counts as missing.
std::vector<EvaluationRecord> read_evaluations(const std::string& directory);

// The trainings of the folds of a cross-validation, those that have begun, by the number of the fold. Any other run has
// none.
struct FoldRun {
  int64_t fold = 0;
  RunSummary run;
};
std::vector<FoldRun> fold_runs(const std::string& directory, const std::map<std::string, std::string>& options);

// Adds to the summary of a cross-validation that has no report.json yet what its folds have measured so far.
void take_folds(RunSummary& run);
// The names of all metrics of the folds, in the order of folds_table(): those of validation first.
std::vector<std::string> metrics_of_folds(const std::vector<rundir::FoldResult>& folds);

// The best step by the monitored metric so far.
std::optional<BestStep> best_step_of(const RunSummary& run);

// A chart, and a name for its file: "loss", "confusion-test".
struct NamedChart {
  std::string name;
  plot::Chart chart;
  bool detail = false;  // true: a page need not show it at once
};
// The charts of the metrics, the important ones first. Throws Error if `wanted` names a metric that is not there. A
// chart of a cross-validation has a curve for each fold.
struct MetricCharts {
  std::vector<NamedChart> charts;
  std::string trouble;  // a sentence, if metrics are missing here; else empty
};
MetricCharts metric_charts(const RunSummary& run, const std::vector<std::string>& wanted);
// The confusion matrices, the curves of precision and recall, and the ROC curves.
std::vector<NamedChart> evaluation_charts(const std::vector<EvaluationRecord>& evaluations);
// Returns whether the run measured classes, so that evaluations of it have a confusion matrix.
bool measures_classes(const RunSummary& run);

// Returns the content of a picture file: an .svg if `vector`, else a .png.
std::string picture_text(const plot::Picture& picture, bool vector);

}  // namespace sinew::report
