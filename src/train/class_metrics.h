// Metrics of classification. They are functions of the confusion matrix, of the scores of two classes, or of how often
// the model was right when it was how sure. All functions are pure. docs/reference/metrics.md defines the metrics.
// Private to train/.
//
// A confusion matrix is [classes * classes], one row for each true class, one column for each predicted class.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "train/train.h"

namespace sinew::train {

double ratio(double part, double whole);  // 0 if `whole` is 0
using report::class_qualities;

// f1, precision and recall (macro averages over the classes that occur or were predicted), f1_weighted (by support),
// balanced_accuracy (the mean recall of the classes that occur), mcc (Matthews' correlation for any number of classes;
// Gorodkin 2004).
report::Metrics confusion_metrics(std::span<const int64_t> confusion, int64_t classes);

// `scores` holds score, label, score, label, and so on; a label above 0.5 is the second class, and a higher score
// speaks for it. Each returns NaN if there is only one class or if a score is NaN.
//
// The area under the ROC curve from ranks, with ties counted half (Mann and Whitney 1947).
double area_under_roc(std::span<const float> scores);
// The average precision, which summarises the curve of precision and recall without interpolation: the sum of
// (recall - recall before) * precision over all thresholds.
double average_precision(std::span<const float> scores);

// The counts for at most about 200 thresholds, of which each is a score of a sample, from the highest on. With the last
// one, all samples are taken for the second class. Empty where the functions above return NaN.
std::vector<report::ThresholdCounts> threshold_counts(std::span<const float> scores);

// Counts how often a model was right in each of kBins intervals of its confidence, which is the probability of the
// class that it chose.
struct Calibration {
  static constexpr int64_t kBins = 15;
  std::array<int64_t, kBins> samples{}, right{};
  std::array<double, kBins> confidence{};  // sums
  // The interval of a confidence from 0 to 1.
  static size_t bin_of(double confidence);
  // The expected calibration error (Guo et al. 2017): the mean distance between confidence and accuracy, weighted by
  // the samples of each interval. 0 if there are none.
  double error() const;
};

}  // namespace sinew::train
