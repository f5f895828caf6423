#include <algorithm>
#include <cmath>

#include "forecast/forecast.h"

namespace sinew::forecast {
namespace {

constexpr size_t kMostPoints = 64;  // even, so that all points can be merged in pairs
// A learning rate falls at once if an evaluation has less than this part of the rate of the one before, and this part
// of the highest rate less.
constexpr double kDrop = 0.5, kDropOfHighest = 0.25;

Evaluations::Point merged(const Evaluations::Point& one, const Evaluations::Point& other) {
  const double count = one.count + other.count, part = other.count / count;
  return {one.step + part * (other.step - one.step), one.value + part * (other.value - one.value), count};
}

}  // namespace

// A point gets evaluations until it has as many as the first one. If there are too many points, neighbours are merged,
// so each point has twice as many.
void Evaluations::add(const Evaluation& evaluation, bool lower) {
  const auto at = static_cast<double>(evaluation.step);
  const double value = evaluation.value, new_rate = evaluation.learning_rate;
  if (new_rate < kDrop * rate && rate - new_rate > kDropOfHighest * highest_rate) dropped_step = at;
  rate = new_rate;
  highest_rate = std::max(highest_rate, rate);
  last_step = at;
  count += 1;
  ++since_best;
  if (!std::isfinite(value)) return;
  if (!best || (lower ? value < *best : value > *best)) {
    best = value;
    best_step = evaluation.step;
    longest_pause = std::max(longest_pause, since_best - 1);
    since_best = 0;
  }
  const Point newest{at, value, 1};
  if (!points.empty() && points.back().count < points.front().count) {
    points.back() = merged(points.back(), newest);
    return;
  }
  if (points.size() == kMostPoints) {
    for (size_t i = 0; i < kMostPoints / 2; ++i) points[i] = merged(points[2 * i], points[2 * i + 1]);
    points.resize(kMostPoints / 2);
  }
  points.push_back(newest);
}

}  // namespace sinew::forecast
