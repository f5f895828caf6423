// Selects the best trials of a study.
#include <algorithm>
#include <cmath>

#include "tune/multi_objective.h"
#include "tune/tune.h"

namespace sinew::tune {

std::vector<int64_t> best_trials(const Study& study) {
  std::vector<int64_t> ids;
  std::vector<Objectives> losses;
  double least = std::numeric_limits<double>::infinity();  // the smallest violation so far
  for (const Trial& trial : study.trials()) {
    const double violation = Study::violation(trial);
    if (trial.state != TrialState::complete || !std::isfinite(violation) || violation > least) continue;
    if (violation < least) {
      ids.clear();
      losses.clear();
      least = violation;
    }
    ids.push_back(trial.id);
    Objectives& loss = losses.emplace_back();
    for (size_t k = 0; k < study.objectives(); ++k) loss.push_back(study.loss(trial, k));
  }
  if (study.objectives() == 1 && !ids.empty())
    return {ids[static_cast<size_t>(std::ranges::min_element(losses) - losses.begin())]};
  std::vector<int64_t> best;
  for (const size_t place : front_of(losses)) best.push_back(ids[place]);
  return best;
}

}  // namespace sinew::tune
