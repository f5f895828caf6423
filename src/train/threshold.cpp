#include "train/threshold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/check.h"
#include "base/number_text.h"
#include "train/class_metrics.h"
#include "train/train.h"

namespace sinew::train {
namespace {

// How many samples of each class are judged right and wrong.
struct Counts {
  double true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;
};

double measured(const std::string& metric, const Counts& counts) {
  const auto& [tp, fp, fn, tn] = counts;
  if (metric == "f1") return ratio(2 * tp, 2 * tp + fp + fn);
  if (metric == "accuracy") return ratio(tp + tn, tp + fp + fn + tn);
  if (metric == "mcc")
    return ratio(tp * tn - fp * fn, std::sqrt(tp + fp) * std::sqrt(tp + fn) * std::sqrt(tn + fp) * std::sqrt(tn + fn));
  const double sensitivity = ratio(tp, tp + fn), specificity = ratio(tn, tn + fp);
  if (metric == "youden") return sensitivity + specificity - 1;
  SINEW_CHECK(metric == "balanced_accuracy", metric);
  if (tp + fn == 0) return specificity;  // the mean recall of the classes that occur
  return tn + fp == 0 ? sensitivity : (sensitivity + specificity) / 2;
}

struct Sample {
  double score = 0;
  bool positive = false;
};

// The counts if no sample is judged positive, and the samples that a threshold can judge, the highest score first.
struct Samples {
  Counts none;
  std::vector<Sample> descending;
};

Samples samples_of(std::span<const float> scores) {
  Samples samples;
  for (size_t i = 0; i + 1 < scores.size(); i += 2) {
    const bool positive = scores[i + 1] > 0.5F;
    if (std::isnan(scores[i])) {
      (positive ? samples.none.false_negative : samples.none.false_positive) += 1;
      continue;
    }
    (positive ? samples.none.false_negative : samples.none.true_negative) += 1;
    samples.descending.push_back({scores[i], positive});
  }
  std::ranges::stable_sort(samples.descending, std::greater<>(), &Sample::score);
  return samples;
}

void judge_positive(Counts& counts, bool positive) {
  (positive ? counts.true_positive : counts.false_positive) += 1;
  (positive ? counts.false_negative : counts.true_negative) -= 1;
}

// `judges` says whether a sample with this score counts as one of the second class.
template <typename Judges>
double measured_with(const std::string& metric, const Samples& samples, Judges judges) {
  Counts counts = samples.none;
  for (const Sample& sample : samples.descending)
    if (judges(sample.score)) judge_positive(counts, sample.positive);
  return measured(metric, counts);
}

// All scores above `low`, up to `high`, judge the samples alike. Returns the one that is used.
double score_between(std::optional<double> low, std::optional<double> high) {
  if ((!low || *low < 0) && (!high || *high >= 0)) return 0;
  if (!low) return *high;
  return high ? *low + (*high - *low) / 2 : *low + 1;
}

}  // namespace

double probability_of(double log_odds) {
  return 1 / (1 + std::exp(-log_odds));
}

double score_of(double probability) {
  return std::log(probability / (1 - probability));
}

Threshold choose_threshold(std::span<const float> scores, const std::string& metric) {
  const Samples samples = samples_of(scores);
  const auto& all = samples.descending;
  Counts counts = samples.none;
  Threshold best{.metric = metric, .chosen = true};
  best.at_half = measured_with(metric, samples, [](double score) { return score > 0; });
  const auto consider = [&](std::optional<double> low, std::optional<double> high) {
    const double score = score_between(low, high), value = measured(metric, counts);
    const bool first = std::isnan(best.at_value);
    if (!first && value < best.at_value) return;
    if (!first && value == best.at_value && std::abs(score) >= std::abs(best.score)) return;
    best.score = score;
    best.at_value = value;
  };
  consider(all.empty() ? std::nullopt : std::optional(all.front().score), std::nullopt);
  for (size_t i = 0; i < all.size(); ++i) {
    judge_positive(counts, all[i].positive);
    if (i + 1 < all.size() && all[i + 1].score == all[i].score) continue;
    consider(i + 1 < all.size() ? std::optional(all[i + 1].score) : std::nullopt, all[i].score);
  }
  best.value = probability_of(best.score);
  return best;
}

Threshold given_threshold(double probability, std::span<const float> scores) {
  Threshold given{.value = probability, .score = score_of(probability), .metric = "f1"};
  if (scores.empty()) return given;
  const Samples samples = samples_of(scores);
  given.at_value = measured_with("f1", samples, [&](double score) { return score >= given.score; });
  given.at_half = measured_with("f1", samples, [](double score) { return score > 0; });
  return given;
}

std::string to_string(const Threshold& threshold, const data::DataInfo& data) {
  const std::string name = data.class_names.size() == 2 ? data.class_names[1] : "1";
  std::string text = "threshold " + rounded_text(threshold.value, 4) + " of '" + name + "'";
  if (std::isnan(threshold.at_value)) return text;
  return text + ": " + threshold.metric + " " + rounded_text(threshold.at_value, 4) + " on the validation data (" +
         rounded_text(threshold.at_half, 4) + " at 0.5)";
}

}  // namespace sinew::train
