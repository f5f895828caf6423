// Forecasts how good a metric will be at the end of a training, from its evaluations so far.
//
// All functions are pure: the same evaluations give the same forecast, to the last bit. A forecast takes under a
// millisecond, however many evaluations there were.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forecast/curve.h"

namespace sinew::forecast {

// The metric that a forecast is about.
struct Monitored {
  std::string metric;    // "val/loss"
  bool lower = true;     // a lower value is better
  double min_delta = 0;  // a value is better than the best one only by more than this
};

struct Evaluation {
  int64_t step = 0;
  double value = 0, learning_rate = 0;  // of the step; 0: not known
};

// The evaluations of one metric. Of many evaluations, neighbours are merged into one point.
struct Evaluations {
  struct Point {
    double step = 0, value = 0;  // means over the evaluations of the point
    double count = 1;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> points;  // by ascending step; at most 64
  std::optional<double> best;
  int64_t best_step = 0;
  int64_t since_best = 0;     // evaluations after the best one
  int64_t longest_pause = 0;  // evaluations in a row, before the best one, of which none was better than all before
  // The patience with which early stopping ends the training now, and would not have ended it before its best value.
  int64_t patience() const { return std::max({int64_t{1}, since_best, longest_pause + 1}); }
  double last_step = 0, count = 0;    // of all evaluations
  double rate = 0, highest_rate = 0;  // learning rates: the newest, the highest
  double dropped_step = 0;            // the evaluation before which the learning rate fell at once; 0: it never did

  // Adds an evaluation after those so far. If its value is not finite, it counts only as one that took place.
  void add(const Evaluation& evaluation, bool lower);
  bool operator==(const Evaluations&) const = default;
};

// The part of the training that is still to come.
struct Rest {
  double last_step = 0;    // of the training
  double evaluations = 0;  // after the newest one
  // The lowest learning rate to come, and the mean of those to come. A rate that falls slows a curve down, and makes it
  // better than it promises. It is unknown by how much, so the forecast becomes wider.
  double lowest_rate = 0, mean_rate = 0;
  // The highest learning rate to come. Before a rate that rises again, a curve promises nothing.
  double highest_rate = 0;
};

// The best value at the end of the training.
struct BestValue {
  // It lies between these with a probability of about 90 %. `low` is below `high`, whichever of them is better. Neither
  // is worse than the best value so far. The metric keeps its bounds: one that was never below 0 if lower is better, or
  // never above 1 if higher is better, does not leave them.
  double low = 0, high = 0;
  double none_better = 0;  // the probability that no evaluation to come is better than the best one so far
};
// Returns nullopt if there are too few evaluations, if the learning rate will still rise much, and if all evaluations
// were equal, unless no better value exists.
std::optional<BestValue> best_at_end(const Evaluations& evaluations, const Monitored& monitored, const Rest& rest);

inline constexpr double kLikely = 0.9;  // a probability that is worth acting on

// When a training could have ended without losing its best evaluation.
struct EarlyEnd {
  // The evaluation with which patience would have ended it, and the patience: so many evaluations without a better one.
  size_t evaluation = 0;
  int64_t patience = 1;
  double none_better = 0;  // the probability of it, as a forecast from the evaluations until then
};
// Returns nullopt if no forecast said with kLikely that no better evaluation would come, or only when the training was
// nearly over. `evaluations` are all of a training that is over, in their order.
std::optional<EarlyEnd> early_end(std::span<const Evaluation> evaluations, const Monitored& monitored);

}  // namespace sinew::forecast
