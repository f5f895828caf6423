#include "train/rate_range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "base/check.h"
#include "base/error.h"
#include "base/number_text.h"

namespace sinew::train {
namespace {

constexpr double kDiverged = 4;       // times the best loss ends the test, as in Lightning and fastai
constexpr size_t kFewestPoints = 10;  // fewer say nothing
constexpr double kWidth = 0.04;       // half a box of the smoothing, as a part of the whole test
constexpr double kLeastFall = 0.02;   // of the first loss
constexpr double kNoise = 7;          // the loss falls by so many standard errors of the smoothed loss, at least
constexpr double kFollow = 0.8;       // RateTest: weight of the losses before

// Replaces each point by the mean of the points around it, `half` on each side. Running sums, so that a long test takes
// no longer for each point.
std::vector<double> box_means(const std::vector<double>& values, size_t half) {
  std::vector<double> sums(values.size() + 1), means(values.size());
  for (size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t first = i - std::min(i, half), last = std::min(i + half, values.size() - 1);
    means[i] = (sums[last + 1] - sums[first]) / static_cast<double>(last + 1 - first);
  }
  return means;
}

// Smooths with nearly a bell curve (three boxes) that is centred on each point: an average of earlier points only would
// show the fall where the loss has long been low.
std::vector<double> smooth(std::vector<double> losses, size_t half) {
  for (int i = 0; i < 3; ++i) losses = box_means(losses, half);
  return losses;
}

double with_two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return std::strtod(text, nullptr);
}

// A loss beyond this one says only that the training diverges. If it counted in full, smoothing would carry it far.
double highest_loss(const std::vector<RatePoint>& points) {
  const double best = std::ranges::min(points, {}, &RatePoint::loss).loss;
  return std::max(points.front().loss, best + (kDiverged - 1) * std::abs(best));
}

// The standard deviation of the losses around their course, from the differences of neighbours: a course that falls
// slowly adds little to them. The first half of a test hardly learns.
double noise_of(const std::vector<RatePoint>& points) {
  const size_t half = points.size() / 2;
  double squares = 0;
  for (size_t i = 1; i < half; ++i) squares += std::pow(points[i].loss - points[i - 1].loss, 2);
  return std::sqrt(squares / static_cast<double>(half - 1) / 2);
}

Error not_found(const std::vector<RatePoint>& points, const std::string& what, const std::string& hint) {
  return {"LR_NOT_FOUND",
          what + " (" + std::to_string(points.size()) + " steps, from a learning rate of " +
              rounded_text(points.empty() ? 0 : points.front().lr, 2) + " to " +
              rounded_text(points.empty() ? 0 : points.back().lr, 2) + ")",
          hint};
}

}  // namespace

double rate_at(const RateRange& range, int64_t step) {
  SINEW_CHECK(range.steps > 1 && range.lowest > 0 && range.lowest < range.highest, range.steps);
  const double part = static_cast<double>(step) / static_cast<double>(range.steps - 1);
  return range.lowest * std::pow(range.highest / range.lowest, part);
}

bool RateTest::diverges_with(double loss) {
  sum_ = kFollow * sum_ + (1 - kFollow) * loss;
  weights_ = kFollow * weights_ + (1 - kFollow);
  const double smoothed = sum_ / weights_;
  best_ = std::min(best_, smoothed);
  return !(smoothed <= best_ + (kDiverged - 1) * std::abs(best_));
}

RateFinding judge_rates(std::vector<RatePoint> points, bool diverged) {
  if (points.size() < kFewestPoints) {
    throw not_found(points, "the loss grows from the first steps on",
                    diverged ? "begin with a smaller --min-lr, and try the job with sinew check"
                             : "use more --steps: at least " + std::to_string(kFewestPoints));
  }
  std::vector<double> seen;
  const double highest = highest_loss(points);
  for (const RatePoint& point : points) seen.push_back(std::min(point.loss, highest));
  const size_t half = std::max<size_t>(1, static_cast<size_t>(kWidth * static_cast<double>(points.size())));
  const double width = std::sqrt(static_cast<double>(half * (half + 1)));  // the standard deviation of three boxes
  RateFinding finding{.smoothed = smooth(std::move(seen), half), .diverged = diverged};
  const std::vector<double>& losses = finding.smoothed;
  const auto lowest = static_cast<size_t>(std::ranges::min_element(losses) - losses.begin());
  const double fall = losses.front() - losses[lowest];
  const double uncertain = noise_of(points) / std::sqrt(2 * std::sqrt(std::numbers::pi) * width);
  if (lowest == 0 || fall < std::max(kLeastFall * std::abs(losses.front()), kNoise * uncertain)) {
    throw not_found(points, "the loss does not fall at any learning rate",
                    "give a larger --max-lr or more --steps, and try the job with sinew check");
  }
  size_t steepest = 0;
  double slope = INFINITY;
  for (size_t i = 0; i <= lowest; ++i) {
    const size_t before = i == 0 ? 0 : i - 1, behind = std::min(i + 1, losses.size() - 1);
    const double here = (losses[behind] - losses[before]) / static_cast<double>(behind - before);
    if (here < slope) {
      slope = here;
      steepest = i;
    }
  }
  finding.suggestion = with_two_digits(points[steepest].lr);
  finding.points = std::move(points);
  return finding;
}

}  // namespace sinew::train
