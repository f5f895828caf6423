#include "base/experiment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/check.h"

namespace sinew {
namespace {

constexpr int64_t kRounds = 6;
constexpr double kWindowSeconds = 0.15;  // a window is longer than a time slice of the kernel, and than most noise
constexpr int64_t kLeastWindow = 3, kMostWindow = 200, kUnknownWindow = 20;
constexpr double kStudent = 2.015;  // 95 % of Student's t distribution with kRounds - 1 degrees of freedom

constexpr std::array<std::string_view, kConditions> kNames = {"usual", "samples_ready", "half_lanes", "cores_busy",
                                                              "memory_busy"};

// The ratio of the sums of each round, as a mean of logarithms: a round with a pause of the machine in one window
// counts as one round, whichever window it was.
StepRatio ratio_of(const std::vector<double>& times, const std::vector<double>& others) {
  std::vector<double> logs;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0 && others[i] > 0) logs.push_back(std::log(times[i] / others[i]));
  }
  if (logs.size() != static_cast<size_t>(kRounds)) return {};
  const auto count = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double one : logs) squares += (one - mean) * (one - mean);
  const double error = kStudent * std::sqrt(squares / (count - 1) / count);
  return {std::exp(mean), std::exp(mean - error), std::exp(mean + error)};
}

}  // namespace

std::string_view name_of(Condition condition) {
  return kNames.at(static_cast<size_t>(condition));
}

std::optional<Condition> condition_of(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Condition>(found - kNames.begin());
}

std::string text_of(const ConditionTime& found) {
  constexpr std::array<const char*, kConditions> kWhere = {
      "as usual", "with its samples loaded", "on half of the lanes", "on half of the lanes beside threads that compute",
      "beside threads that read memory"};
  char text[160];
  std::snprintf(text, sizeof text, "%s, a step took %.2f times as long%s (%.2f to %.2f)",
                kWhere.at(static_cast<size_t>(found.condition)), found.ratio.expected,
                found.condition == Condition::memory_busy ? " as beside threads that compute" : "", found.ratio.low,
                found.ratio.high);
  return text;
}

std::string text_of(const std::vector<ConditionTime>& found) {
  if (found.empty()) return "";
  char text[64];
  std::snprintf(text, sizeof text, "a step takes %.3g ms", 1e3 * found.front().seconds);
  std::string all = text;
  for (const ConditionTime& one : found) {
    if (one.condition != Condition::usual) all += "; " + text_of(one);
  }
  return all;
}

int64_t Experiment::window_for(double step_seconds) {
  if (!(step_seconds > 0)) return kUnknownWindow;
  return static_cast<int64_t>(std::clamp(std::ceil(kWindowSeconds / step_seconds), static_cast<double>(kLeastWindow),
                                         static_cast<double>(kMostWindow)));
}

// The first steps of a window still feel the condition before it: the caches, and the samples that are loaded already.
Experiment::Experiment(const std::vector<Condition>& conditions, int64_t window)
    : window_(window), not_counted_(window >= kLeastWindow ? std::max<int64_t>(1, window / 5) : 0) {
  SINEW_CHECK(window >= 1, window);
  conditions_.push_back(Condition::usual);
  for (const Condition condition : conditions) {
    if (std::ranges::find(conditions_, condition) == conditions_.end()) conditions_.push_back(condition);
  }
  seconds_.assign(conditions_.size(), std::vector<double>(static_cast<size_t>(kRounds), 0.0));
}

bool Experiment::done() const {
  return steps_ >= window_ * kRounds * static_cast<int64_t>(conditions_.size());
}

size_t Experiment::window_at(int64_t step) const {
  const auto count = static_cast<int64_t>(conditions_.size());
  const int64_t window = step / window_, round = window / count, at = window % count;
  return static_cast<size_t>(round % 2 == 0 ? at : count - 1 - at);
}

Condition Experiment::next() const {
  return done() ? Condition::usual : conditions_[window_at(steps_)];
}

void Experiment::after(double step_seconds) {
  if (done()) return;
  const auto round = static_cast<size_t>(steps_ / window_ / static_cast<int64_t>(conditions_.size()));
  if (steps_ % window_ >= not_counted_) seconds_[window_at(steps_)][round] += std::max(0.0, step_seconds);
  ++steps_;
}

std::vector<ConditionTime> Experiment::results() const {
  std::vector<ConditionTime> found;
  if (!done()) return found;
  const auto index_of = [&](Condition condition) {
    return static_cast<size_t>(std::ranges::find(conditions_, condition) - conditions_.begin());
  };
  for (size_t i = 0; i < conditions_.size(); ++i) {
    const bool both = conditions_[i] == Condition::memory_busy && index_of(Condition::cores_busy) < conditions_.size();
    const std::vector<double>& other = seconds_[both ? index_of(Condition::cores_busy) : 0];
    const int64_t steps = kRounds * (window_ - not_counted_);
    const double sum = std::accumulate(seconds_[i].begin(), seconds_[i].end(), 0.0);
    found.push_back({conditions_[i], steps, sum / static_cast<double>(steps), ratio_of(seconds_[i], other)});
  }
  return found;
}

}  // namespace sinew
