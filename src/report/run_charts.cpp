// Decides which charts a run has.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/joined.h"
#include "base/number_text.h"
#include "report/curves.h"
#include "spec/spec.h"

namespace sinew::report {
namespace {

using plot::Color;
using plot::Curve;
using plot::LineChart;
using plot::MatrixChart;

// The metrics of one name, such as train/loss, val/loss and test/loss, are in one chart.
struct Group {
  std::string name;
  std::map<std::string, const MetricCurve*> by_split;  // "" if the metric belongs to no split
};

std::pair<std::string, std::string> split_and_name(const std::string& metric) {
  const size_t slash = metric.find('/');
  const std::string split = slash == std::string::npos ? "" : metric.substr(0, slash);
  if (split != "train" && split != "val" && split != "test") return {"", metric};
  return {split, metric.substr(slash + 1)};
}

constexpr int kDetail = 3, kLearningRate = 4;

// Smaller is shown earlier.
int importance_of(const Group& group) {
  const std::string& name = group.name;
  if (name == "loss") return 0;
  if (name == "learning_rate") return kLearningRate;
  if (group.by_split.contains("")) return name.starts_with("throughput/") || name.starts_with("time/") ? 7 : 2;
  if (name == "grad_norm") return 5;
  if (is_detail(name)) return kDetail;
  return group.by_split.contains("val") || group.by_split.contains("test") ? 1 : 6;
}

constexpr const char* kShareUnit = "from 0 to 1";

std::string unit_of(const std::string& metric) {
  const std::string name = metric.substr(metric.rfind('/') + 1);
  constexpr std::array<std::string_view, 12> kShares = {
      "accuracy", "f1",  "f1_weighted", "precision", "recall",     "balanced_accuracy",
      "top5",     "auc", "pr_auc",      "ece",       "error_rate", "share"};
  if (std::ranges::find(kShares, name) != kShares.end()) return kShareUnit;
  if (name == "rmse" || name == "mae") return "in the unit of the target";
  if (name.ends_with("_per_sec") || name.ends_with("_per_second")) return "per second";
  if (name.ends_with("_ms")) return "milliseconds";
  if (name.ends_with("_seconds") || name.ends_with("_s")) return "seconds";
  if (name.ends_with("_bytes")) return "bytes";
  return "";
}

// Returns those of the metrics `known` that the caller wants: all of them, or those whose name, with or without the
// split, is in `wanted`.
std::vector<std::string> chosen(const std::vector<std::string>& known, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return known;
  std::vector<std::string> found;
  std::set<std::string> missing(wanted.begin(), wanted.end());
  for (const std::string& metric : known) {
    bool draws = false;
    for (const std::string& one : {metric, split_and_name(metric).second}) {
      if (std::ranges::find(wanted, one) == wanted.end()) continue;
      draws = true;
      missing.erase(one);
    }
    if (draws) found.push_back(metric);
  }
  if (missing.empty()) return found;
  const std::string near = spec::did_you_mean(*missing.begin(), known);
  throw Error("PLOT_NO_METRIC", "the run has no metric '" + *missing.begin() + "'",
              known.empty()  ? "it has measured none yet"
              : near.empty() ? "it has " + joined(known, ", ")
                             : "did you mean " + near + "?");
}

std::vector<Group> groups_of(const RunCurves& curves, const std::vector<std::string>& wanted) {
  std::map<std::string, Group> by_name;
  std::vector<std::string> known;
  for (const auto& [metric, curve] : curves.by_metric) known.push_back(metric);
  for (const std::string& metric : chosen(known, wanted)) {
    const auto [split, name] = split_and_name(metric);
    by_name[name].name = name;
    by_name[name].by_split[split] = &curves.by_metric.at(metric);
  }
  std::vector<Group> groups;
  for (auto& [name, group] : by_name) groups.push_back(std::move(group));
  std::ranges::stable_sort(groups, {}, importance_of);
  return groups;
}

Curve curve_of(const std::string& split, const std::string& name, const MetricCurve& curve) {
  const Color color = split == "val" ? plot::kVermilion : split == "test" ? plot::kGreen : plot::kBlue;
  return {.name = split.empty() ? name : split,
          .color = color,
          .points = curve.values.points(),
          .not_finite = curve.values.not_finite(),
          .last = rounded_text(curve.last, 5),
          .faint = split != "val" && split != "test"};
}

// All charts of a run have the same x axis.
LineChart chart_of(const Group& group, const std::optional<BestStep>& best, double steps) {
  const std::string unit = unit_of(group.name);
  LineChart chart{
      .title = group.name, .x_label = "step", .y_label = group.name + (unit.empty() ? "" : " (" + unit + ")")};
  chart.whole_x = true;
  chart.x_range = plot::Range{0, steps};
  if (unit == kShareUnit) chart.y_limits = plot::Range{0, 1};
  chart.logarithmic_if_wide = group.name != "learning_rate";
  for (const char* split : {"", "train", "val", "test"}) {
    const auto found = group.by_split.find(split);
    if (found != group.by_split.end()) chart.curves.push_back(curve_of(split, group.name, *found->second));
  }
  if (best && !group.by_split.contains("")) {
    chart.best = static_cast<double>(best->step);
    chart.best_text =
        "best " + best->metric + "  " + rounded_text(best->value, 5) + ", step " + std::to_string(best->step);
  }
  return chart;
}

// A detail, and what belongs to no split, need not be seen at once.
bool is_secondary(const Group& group) {
  const int importance = importance_of(group);
  return importance == kDetail || importance > kLearningRate;
}

// One chart for each metric of each split, because a chart with all splits of all folds is hard to read.
MetricCharts charts_of_folds(const std::vector<FoldRun>& folds, const std::vector<std::string>& wanted) {
  constexpr std::array kColors = {plot::kBlue,   plot::kVermilion, plot::kGreen,
                                  plot::kPurple, plot::kOrange,    plot::kSkyBlue};
  MetricCharts made;
  std::vector<RunCurves> curves;
  std::set<std::string> known;
  double steps = 0;
  for (const FoldRun& fold : folds) {
    curves.push_back(read_curves(fold.run.directory));
    if (!curves.back().trouble.empty())
      made.trouble = "fold " + std::to_string(fold.fold) + ": " + curves.back().trouble;
    for (const auto& [metric, curve] : curves.back().by_metric) {
      known.insert(metric);
      steps = std::max(steps, static_cast<double>(curve.last_step));
    }
  }
  std::vector<Group> groups;  // each of one metric; its curves are those of the first fold that has it
  for (const std::string& metric : chosen({known.begin(), known.end()}, wanted)) {
    const auto [split, name] = split_and_name(metric);
    const auto has = [&](const RunCurves& one) { return one.by_metric.contains(metric); };
    groups.push_back({name, {{split, &std::ranges::find_if(curves, has)->by_metric.at(metric)}}});
  }
  std::ranges::stable_sort(
      groups, {}, [](const Group& group) { return std::pair(group.by_split.contains("train"), importance_of(group)); });
  for (const Group& group : groups) {
    const std::string& split = group.by_split.begin()->first;
    const std::string metric = split.empty() ? group.name : split + "/" + group.name;
    LineChart chart = chart_of(group, std::nullopt, steps);
    chart.title = chart.y_label = metric;
    chart.curves.clear();
    for (size_t i = 0; i < folds.size(); ++i) {
      const auto found = curves[i].by_metric.find(metric);
      if (found == curves[i].by_metric.end()) continue;
      chart.curves.push_back(curve_of(split, metric, found->second));
      chart.curves.back().name = "fold " + std::to_string(folds[i].fold);
      chart.curves.back().color = kColors[i % kColors.size()];
    }
    made.charts.push_back({metric, std::move(chart), split == "train" || is_secondary(group)});
  }
  return made;
}

std::string of_which(const EvaluationRecord& evaluation) {
  std::string text = evaluation.part + " data";
  if (evaluation.step) text += ", step " + std::to_string(*evaluation.step);
  return text;
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string area_text(const EvaluationRecord& evaluation, const char* metric) {
  const auto found = evaluation.metrics.find(metric);
  return found == evaluation.metrics.end() ? "" : "area " + rounded_text(found->second, 4);
}

Curve threshold_curve(const EvaluationRecord& evaluation, bool precision) {
  Curve curve{.name = evaluation.part,
              .color = evaluation.part == "test" ? plot::kGreen : plot::kVermilion,
              .points = {},
              .last = area_text(evaluation, precision ? "pr_auc" : "auc"),
              .faint = true};
  const int64_t positives = evaluation.thresholds.back().true_positives;
  const int64_t negatives = evaluation.thresholds.back().false_positives;
  if (!precision) curve.points.push_back({0, 0});
  for (const ThresholdCounts& one : evaluation.thresholds) {
    const double recall = share(one.true_positives, positives);
    curve.points.push_back(
        precision ? plot::Point{recall, share(one.true_positives, one.true_positives + one.false_positives)}
                  : plot::Point{share(one.false_positives, negatives), recall});
  }
  return curve;
}

LineChart share_chart(const std::string& title, const std::string& x_label, const std::string& y_label) {
  LineChart chart{.title = title, .x_label = x_label, .y_label = y_label};
  chart.x_range = chart.y_range = plot::Range{0, 1};
  return chart;
}

}  // namespace

bool measures_classes(const RunSummary& run) {
  return run.last.contains("val/f1") || run.last.contains("test/f1");
}

MetricCharts metric_charts(const RunSummary& run, const std::vector<std::string>& wanted) {
  MetricCharts made;
  if (const auto folds = fold_runs(run.directory, run.options); !folds.empty()) {
    made = charts_of_folds(folds, wanted);
  } else {
    const RunCurves curves = read_curves(run.directory);
    made.trouble = curves.trouble;
    const auto best = best_step_of(run);
    double steps = static_cast<double>(run.steps);
    for (const auto& [metric, curve] : curves.by_metric) steps = std::max(steps, static_cast<double>(curve.last_step));
    for (const Group& group : groups_of(curves, wanted))
      made.charts.push_back({group.name, chart_of(group, best, steps), is_secondary(group)});
  }
  // A run that has measured nothing still has a picture.
  if (made.charts.empty())
    made.charts.push_back({"loss", LineChart{.title = "loss", .x_label = "step", .y_label = "loss", .curves = {}}});
  return made;
}

std::vector<NamedChart> evaluation_charts(const std::vector<EvaluationRecord>& evaluations) {
  std::vector<NamedChart> charts;
  for (const EvaluationRecord& evaluation : evaluations) {
    if (evaluation.confusion.empty()) continue;
    charts.push_back(
        {"confusion-" + evaluation.part, MatrixChart{.title = "confusion matrix (" + of_which(evaluation) + ")",
                                                     .names = evaluation.class_names,
                                                     .classes = evaluation.classes,
                                                     .counts = evaluation.confusion}});
  }
  LineChart roc = share_chart("ROC curve", "false positive rate (from 0 to 1)", "true positive rate (from 0 to 1)");
  LineChart precision = share_chart("precision and recall", "recall (from 0 to 1)", "precision (from 0 to 1)");
  for (const EvaluationRecord& evaluation : evaluations) {
    if (evaluation.thresholds.empty()) continue;
    const std::string positive = evaluation.class_names.size() == 2 ? "; positive: " + evaluation.class_names[1] : "";
    roc.title = "ROC curve" + positive;
    precision.title = "precision and recall" + positive;
    roc.curves.push_back(threshold_curve(evaluation, false));
    precision.curves.push_back(threshold_curve(evaluation, true));
  }
  if (roc.curves.empty()) return charts;
  roc.curves.push_back({"chance", plot::kGrey, {{0, 0}, {1, 1}}, 0, "", true});
  charts.push_back({"roc", std::move(roc)});
  charts.push_back({"precision-recall", std::move(precision)});
  return charts;
}

}  // namespace sinew::report
