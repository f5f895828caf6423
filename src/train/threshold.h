// The threshold of a model with two classes: from which probability of the second class, the positive one, a sample
// counts as one of it. Pure functions. Private to train/.
//
// Outputs are compared as scores, the log odds of the second class: the difference of two outputs, or one output.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "train/train.h"

namespace sinew::train {

struct Threshold {
  double value = 0.5;  // a probability
  double score = 0;    // the same as a score: a sample with at least this score is of the second class
  std::string metric;  // by which it was chosen; if the job gives the value, f1
  bool chosen = false;
  // The metric on the validation data with the threshold, and without one. NaN if it was not measured.
  double at_value = std::numeric_limits<double>::quiet_NaN(), at_half = std::numeric_limits<double>::quiet_NaN();
};

// The log odds of a probability; probability_of() in train.h is the inverse.
double score_of(double probability);

// `scores` holds score, label, score, label, and so on, as in class_metrics.h. Returns the threshold with the highest
// value of the metric: f1 (of the second class), accuracy, balanced_accuracy, youden or mcc. It lies in the middle
// between two scores; if several are equally good, it is the nearest to 0.5. A score of NaN counts as wrong.
Threshold choose_threshold(std::span<const float> scores, const std::string& metric);

// Returns the threshold of this probability, with its f1 on the validation data if there are `scores`.
Threshold given_threshold(double probability, std::span<const float> scores);

// "threshold 0.31 of 'yes': f1 0.71 on the validation data (0.65 at 0.5)".
std::string to_string(const Threshold& threshold, const data::DataInfo& data);

}  // namespace sinew::train
