// Computes metrics from integer counts, from sums that a fixed tree adds, and from gathered scores. The result does not
// depend on which worker computed which part.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "train/loss.h"
#include "train/train.h"

namespace sinew::train {
namespace {

constexpr int64_t kMaxConfusionClasses = 256;
constexpr int64_t kTop = 5;

// Indices into Contribution::counts.
enum Count { kSeen, kCorrect, kInTop, kConfusion };  // the bins of the calibration follow the confusion matrix
// Indices into Contribution::sums of a regression. A classification has the sum of the confidences of each bin.
enum Sum { kSquared, kAbsolute, kTarget, kTargetSquared };

// Returns whether these scores select a class. They do not if one is NaN or the largest is infinite, because their
// softmax is then undefined. A score of minus infinity excludes a class and is allowed.
bool chooses(const float* row, int64_t width) {
  if (std::any_of(row, row + width, [](float v) { return std::isnan(v); })) return false;
  return std::isfinite(*std::max_element(row, row + width));
}

// The probability of the class that each row chooses. libtorch computes it, as it computes the loss: all members have
// the same libtorch, but perhaps another libm.
torch::Tensor confidences(const torch::Tensor& rows, bool single_logit) {
  return single_logit ? rows.flatten().abs().sigmoid() : std::get<0>(rows.softmax(1).max(1));
}

}  // namespace

// Checks the outputs against the classes. Counters are indexed by class, so every number from a model or a dataset must
// be checked first.
void MetricCounter::check_rows(const torch::Tensor& x, const torch::Tensor& y) const {
  const int64_t width = single_logit_ ? 1 : classes_;
  if (x.dim() == 2 && x.size(1) == width && x.size(0) == y.numel()) return;
  std::ostringstream is;
  is << x.sizes();
  throw Error("MODEL_OUTPUT_MISMATCH",
              "the model's output is " + is.str() + ", but the metrics take [" + std::to_string(y.numel()) + ", " +
                  std::to_string(width) + "]",
              "change the model's last layer or the data's classes");
}

void MetricCounter::check_class(int64_t label) const {
  if (label >= 0 && label < classes_) return;
  throw Error("TRAIN_LABEL_INVALID",
              "a sample has the class " + std::to_string(label) + ", but the data has the classes 0 to " +
                  std::to_string(classes_ - 1),
              "check the labels of the data");
}

MetricCounter::MetricCounter(const std::string& loss, const data::DataInfo& data, bool detailed)
    : only_loss_(loss == "program"),
      task_(data.task),
      classes_(data.classes),
      single_logit_(loss == "bce" && data.classes == 2),
      detailed_(detailed),
      confusion_(detailed && data.task == data::Task::classification && data.classes <= kMaxConfusionClasses),
      gather_(detailed && data.task == data::Task::classification && data.classes == 2),
      calibration_(detailed && data.task == data::Task::classification),
      target_mean_(data.target_mean),
      target_std_(data.target_std) {}

size_t MetricCounter::bins_at() const {
  return static_cast<size_t>(kConfusion + (confusion_ ? classes_ * classes_ : 0));
}

void MetricCounter::count(const torch::Tensor& outputs, const torch::Tensor& targets, Contribution& leaf) const {
  if (only_loss_) return;
  const torch::NoGradGuard no_grad;
  if (task_ == data::Task::regression) {
    count_numbers(outputs, targets, leaf);
  } else {
    count_classes(outputs, targets, leaf);
  }
}

void MetricCounter::count_classes(const torch::Tensor& outputs, const torch::Tensor& targets,
                                  Contribution& leaf) const {
  const torch::Tensor rows = outputs.dim() == 3 ? outputs.flatten(0, 1) : outputs;
  const torch::Tensor x =
      (rows.dim() == 1 && single_logit_ ? rows.unsqueeze(1) : rows).to(torch::kCPU, torch::kFloat32).contiguous();
  const torch::Tensor y = targets.flatten().to(torch::kCPU, torch::kInt64).contiguous();
  check_rows(x, y);
  leaf.counts.assign(bins_at() + (calibration_ ? 2 * Calibration::kBins : 0), 0);
  if (calibration_) leaf.sums.assign(Calibration::kBins, 0.0);
  const int64_t n = x.size(0), width = x.size(1);
  const float* row = x.const_data_ptr<float>();
  const int64_t* truth = y.const_data_ptr<int64_t>();
  const torch::Tensor sure = calibration_ ? confidences(x, single_logit_) : torch::Tensor();
  for (int64_t i = 0; i < n; ++i, row += width) {
    check_class(truth[i]);
    const bool chosen = single_logit_ ? !std::isnan(row[0]) : chooses(row, width);
    int64_t guess = single_logit_ ? (row[0] > 0 ? 1 : 0) : std::max_element(row, row + width) - row;
    const bool likely_right = chosen && guess == truth[i];
    const float score = single_logit_ ? row[0] : width == 2 ? row[1] - row[0] : 0;
    if (threshold_ && classes_ == 2) guess = score >= *threshold_ ? 1 : 0;
    if (!chosen) guess = (truth[i] + 1) % classes_;  // counts as wrong, whatever the truth is
    ++leaf.counts[kSeen];
    leaf.counts[kCorrect] += guess == truth[i] ? 1 : 0;
    if (confusion_) ++leaf.counts[static_cast<size_t>(kConfusion + truth[i] * classes_ + guess)];
    if (calibration_ && chosen) {
      const double confidence = sure.const_data_ptr<float>()[i];
      const size_t bin = Calibration::bin_of(confidence);
      ++leaf.counts[bins_at() + bin];
      leaf.counts[bins_at() + Calibration::kBins + bin] += likely_right ? 1 : 0;  // a threshold changes no probability
      leaf.sums[bin] += confidence;
    }
    if (detailed_ && !single_logit_ && classes_ > kTop) {
      const auto above = std::count_if(row, row + width, [&](float v) { return v > row[truth[i]]; });
      leaf.counts[kInTop] += chosen && above < kTop ? 1 : 0;
    }
    if (gather_) {
      leaf.scores.push_back(chosen ? score : std::nanf(""));
      leaf.scores.push_back(static_cast<float>(truth[i]));
    }
  }
}

void MetricCounter::count_numbers(const torch::Tensor& outputs, const torch::Tensor& targets,
                                  Contribution& leaf) const {
  const torch::Tensor x = outputs.to(torch::kCPU, torch::kFloat32).flatten().contiguous();
  const torch::Tensor y = targets.to(torch::kCPU, torch::kFloat32).flatten().contiguous();
  if (x.numel() != y.numel())
    throw Error("MODEL_OUTPUT_MISMATCH",
                "the model's output has " + std::to_string(x.numel()) + " numbers for " + std::to_string(y.numel()) +
                    " targets",
                "change the model's last layer");
  leaf.counts = {x.numel()};
  leaf.sums.assign(kTargetSquared + 1, 0.0);
  const auto width = static_cast<int64_t>(target_std_.size());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto which = static_cast<size_t>(i % width);
    const double truth = y.const_data_ptr<float>()[i], mean = target_mean_[which];
    const double error = x.const_data_ptr<float>()[i] * target_std_[which] + mean - truth;
    leaf.sums[kSquared] += error * error;
    leaf.sums[kAbsolute] += std::abs(error);
    // Targets are taken relative to the mean of the training targets, to avoid cancellation when finish() subtracts.
    leaf.sums[kTarget] += truth - mean;
    leaf.sums[kTargetSquared] += (truth - mean) * (truth - mean);
  }
}

report::Metrics MetricCounter::finish(const Contribution& reduced) const {
  report::Metrics metrics;
  if (reduced.weight > 0) metrics["loss"] = reduced.loss / reduced.weight;
  if (reduced.counts.empty() || reduced.counts[kSeen] == 0) return metrics;
  const auto seen = static_cast<double>(reduced.counts[kSeen]);
  if (task_ == data::Task::regression) {
    metrics["rmse"] = std::sqrt(ratio(reduced.sums[kSquared], seen));
    metrics["mae"] = ratio(reduced.sums[kAbsolute], seen);
    const double spread = reduced.sums[kTargetSquared] - ratio(reduced.sums[kTarget] * reduced.sums[kTarget], seen);
    if (detailed_ && spread > 0) metrics["r2"] = 1.0 - reduced.sums[kSquared] / spread;
    return metrics;
  }
  metrics["accuracy"] = ratio(static_cast<double>(reduced.counts[kCorrect]), seen);
  if (task_ == data::Task::next_token && metrics.contains("loss")) metrics["perplexity"] = std::exp(metrics["loss"]);
  if (detailed_ && task_ == data::Task::classification && classes_ > kTop) {
    metrics["top5"] = ratio(static_cast<double>(reduced.counts[kInTop]), seen);
  }
  if (confusion_) metrics.merge(confusion_metrics(confusion(reduced), classes_));
  if (calibration_) metrics["ece"] = calibration(reduced).error();
  if (gather_) {
    const double area = area_under_roc(reduced.scores), precision = average_precision(reduced.scores);
    if (!std::isnan(area)) metrics["auc"] = area;
    if (!std::isnan(precision)) metrics["pr_auc"] = precision;
  }
  return metrics;
}

Calibration MetricCounter::calibration(const Contribution& reduced) const {
  Calibration found;
  if (!calibration_ || reduced.counts.empty()) return found;
  const auto bins = reduced.counts.begin() + static_cast<std::ptrdiff_t>(bins_at());
  std::copy_n(bins, Calibration::kBins, found.samples.begin());
  std::copy_n(bins + Calibration::kBins, Calibration::kBins, found.right.begin());
  std::copy_n(reduced.sums.begin(), Calibration::kBins, found.confidence.begin());
  return found;
}

std::optional<double> MetricCounter::threshold() const {
  return threshold_ && classes_ == 2 ? std::optional(probability_of(*threshold_)) : std::nullopt;
}

std::vector<report::ThresholdCounts> MetricCounter::thresholds(const Contribution& reduced) const {
  if (!gather_) return {};
  return threshold_counts(reduced.scores);
}

std::vector<int64_t> MetricCounter::confusion(const Contribution& reduced) const {
  if (!confusion_ || reduced.counts.empty()) return {};
  const auto counts = reduced.counts.begin();
  return {counts + kConfusion, counts + static_cast<std::ptrdiff_t>(bins_at())};
}

std::vector<std::string> MetricCounter::names(const std::string& loss, const data::DataInfo& data) {
  if (loss == "program") return {"loss"};
  if (data.task == data::Task::regression) return {"loss", "rmse", "mae", "r2"};
  if (data.task == data::Task::next_token) return {"loss", "accuracy", "perplexity"};
  std::vector<std::string> names = {"loss", "accuracy"};
  if (data.classes <= kMaxConfusionClasses)
    names.insert(names.end(), {"f1", "f1_weighted", "precision", "recall", "balanced_accuracy", "mcc"});
  if (data.classes > kTop) names.push_back("top5");
  if (data.classes == 2) names.insert(names.end(), {"auc", "pr_auc"});
  names.push_back("ece");
  return names;
}

}  // namespace sinew::train
