#include <algorithm>
#include <limits>

#include "forecast/forecast.h"

namespace sinew::forecast {
namespace {

constexpr size_t kMostForecasts = 100;  // for one training, however many evaluations it had

// How patience sees the evaluations of a training.
struct Patience {
  size_t best = 0;      // the evaluation with the best value
  int64_t longest = 0;  // the most evaluations without a better one before it
};

Patience patience_of(std::span<const Evaluation> evaluations, const Monitored& monitored) {
  Patience found;
  std::optional<double> best;
  int64_t without = 0;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const double value = evaluations[i].value;
    const bool better =
        best ? (monitored.lower ? value < *best - monitored.min_delta : value > *best + monitored.min_delta)
             : value == value;  // NaN is never better
    ++without;
    if (!better) continue;
    best = value;
    found = {i, std::max(found.longest, without - 1)};
    without = 0;
  }
  return found;
}

}  // namespace

std::optional<EarlyEnd> early_end(std::span<const Evaluation> evaluations, const Monitored& monitored) {
  if (evaluations.empty()) return std::nullopt;
  const size_t last = evaluations.size() - 1, each = 1 + evaluations.size() / kMostForecasts;
  const Patience patience = patience_of(evaluations, monitored);
  std::vector<double> lowest_rates(evaluations.size() + 1, std::numeric_limits<double>::infinity());
  std::vector<double> rates(evaluations.size() + 1, 0), highest_rates = rates;  // sums and maxima from an evaluation on
  for (size_t i = last + 1; i-- > 0;) {
    lowest_rates[i] = std::min(lowest_rates[i + 1], evaluations[i].learning_rate);
    highest_rates[i] = std::max(highest_rates[i + 1], evaluations[i].learning_rate);
    rates[i] = rates[i + 1] + evaluations[i].learning_rate;
  }
  Evaluations so_far;
  for (size_t i = 0; i < last; ++i) {
    so_far.add(evaluations[i], monitored.lower);
    if (i < patience.best || (i - patience.best) % each != 0) continue;  // a better one comes
    const Rest rest{.last_step = static_cast<double>(evaluations[last].step),
                    .evaluations = static_cast<double>(last - i),
                    .lowest_rate = lowest_rates[i + 1],
                    .mean_rate = rates[i + 1] / static_cast<double>(last - i),
                    .highest_rate = highest_rates[i + 1]};
    const auto best = best_at_end(so_far, monitored, rest);
    if (!best || best->none_better < kLikely) continue;
    // With this patience, the training would not have ended before its best evaluation.
    const auto least = std::max(static_cast<int64_t>(i - patience.best), patience.longest + 1);
    const size_t end = patience.best + static_cast<size_t>(least);
    if (end >= last) return std::nullopt;
    return EarlyEnd{.evaluation = end, .patience = least, .none_better = best->none_better};
  }
  return std::nullopt;
}

}  // namespace sinew::forecast
