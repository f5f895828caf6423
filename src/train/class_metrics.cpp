#include "train/class_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinew::train {
namespace {

// Returns the indices of the scores, ascending. Returns none if there is only one class or if a score is NaN.
std::vector<size_t> ascending(std::span<const float> scores) {
  const size_t n = scores.size() / 2;
  size_t positives = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(scores[2 * i])) return {};
    positives += scores[2 * i + 1] > 0.5F ? 1 : 0;
  }
  if (positives == 0 || positives == n) return {};
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[2 * a] < scores[2 * b]; });
  return order;
}

// Calls visit(first, last, positives) for each run of equal scores in `order`.
template <typename Visit>
void for_each_tie(std::span<const float> scores, std::span<const size_t> order, Visit visit) {
  for (size_t first = 0; first < order.size();) {
    size_t last = first, positives = 0;
    for (; last < order.size() && scores[2 * order[last]] == scores[2 * order[first]]; ++last)
      positives += scores[2 * order[last] + 1] > 0.5F ? 1 : 0;
    visit(first, last, static_cast<double>(positives));
    first = last;
  }
}

// Matthews' correlation of truth and prediction.
double correlation(const std::vector<ClassQuality>& qualities, double right, double all) {
  double both = 0, truth_squared = 0, predicted_squared = 0;
  for (const ClassQuality& one : qualities) {
    const auto truth = static_cast<double>(one.support), predicted = static_cast<double>(one.predicted);
    both += truth * predicted;
    truth_squared += truth * truth;
    predicted_squared += predicted * predicted;
  }
  const double spread = std::sqrt(all * all - truth_squared) * std::sqrt(all * all - predicted_squared);
  return ratio(right * all - both, spread);
}

}  // namespace

double ratio(double part, double whole) {
  return whole == 0 ? 0.0 : part / whole;
}

report::Metrics confusion_metrics(std::span<const int64_t> confusion, int64_t classes) {
  const std::vector<ClassQuality> qualities = class_qualities(confusion, classes);
  double used = 0, occurring = 0, all = 0, right = 0;
  double f1 = 0, f1_weighted = 0, precision = 0, recall = 0, occurring_recall = 0;
  for (const ClassQuality& one : qualities) {
    if (one.support + one.predicted == 0) continue;
    const auto support = static_cast<double>(one.support);
    used += 1;
    all += support;
    right += one.recall * support;
    f1 += one.f1;
    f1_weighted += one.f1 * support;
    precision += one.precision;
    recall += one.recall;
    if (one.support == 0) continue;
    occurring += 1;
    occurring_recall += one.recall;
  }
  return {{"f1", ratio(f1, used)},
          {"f1_weighted", ratio(f1_weighted, all)},
          {"precision", ratio(precision, used)},
          {"recall", ratio(recall, used)},
          {"balanced_accuracy", ratio(occurring_recall, occurring)},
          {"mcc", correlation(qualities, right, all)}};
}

double area_under_roc(std::span<const float> scores) {
  const std::vector<size_t> order = ascending(scores);
  if (order.empty()) return std::nan("");
  double positives = 0, rank_sum = 0;
  for_each_tie(scores, order, [&](size_t first, size_t last, double of_tie) {
    rank_sum += of_tie * static_cast<double>(first + last + 1) / 2.0;
    positives += of_tie;
  });
  const double negatives = static_cast<double>(order.size()) - positives;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

double average_precision(std::span<const float> scores) {
  std::vector<size_t> order = ascending(scores);
  if (order.empty()) return std::nan("");
  std::ranges::reverse(order);
  double found = 0, sum = 0;
  for_each_tie(scores, order, [&](size_t, size_t last, double of_tie) {
    found += of_tie;
    sum += of_tie * found / static_cast<double>(last);
  });
  return sum / found;
}

std::vector<report::ThresholdCounts> threshold_counts(std::span<const float> scores) {
  constexpr int64_t kParts = 100;
  std::vector<size_t> order = ascending(scores);
  if (order.empty()) return {};
  std::ranges::reverse(order);
  int64_t positives = 0;
  for (size_t i = 1; i < scores.size(); i += 2) positives += scores[i] > 0.5F ? 1 : 0;
  const int64_t negatives = static_cast<int64_t>(order.size()) - positives;
  std::vector<report::ThresholdCounts> kept;
  report::ThresholdCounts counts, newest;
  for_each_tie(scores, order, [&](size_t, size_t last, double of_tie) {
    counts.score = scores[2 * order[last - 1]];
    counts.true_positives += static_cast<int64_t>(of_tie);
    counts.false_positives = static_cast<int64_t>(last) - counts.true_positives;
    const int64_t more_right = counts.true_positives - newest.true_positives;
    const int64_t more_wrong = counts.false_positives - newest.false_positives;
    if (more_right * kParts < positives && more_wrong * kParts < negatives && last < order.size()) return;
    kept.push_back(newest = counts);
  });
  return kept;
}

size_t Calibration::bin_of(double confidence) {
  const double bin = std::ceil(std::clamp(confidence, 0.0, 1.0) * static_cast<double>(kBins)) - 1;
  return static_cast<size_t>(std::max(0.0, bin));
}

double Calibration::error() const {
  double sum = 0, all = 0;
  for (size_t bin = 0; bin < samples.size(); ++bin) {
    sum += std::abs(confidence[bin] - static_cast<double>(right[bin]));
    all += static_cast<double>(samples[bin]);
  }
  return ratio(sum, all);
}

}  // namespace sinew::train
