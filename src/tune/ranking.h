// Ranks the trials with a known loss from best to worst, and updates the ranking as the study grows.
//
// Feasible trials come first, then the others by their violation. Within these groups, trials are ordered by loss
// (Study::known_loss). With several objectives they are ordered by the number of trials that dominate them (Fonseca,
// Fleming 1993). Of equal trials, the one that ended earlier comes first. With one objective, open trials that have
// reported are ranked by their estimated loss.
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

class Ranking {
 public:
  // Updates the ranking with the changes of the study since the last call.
  void follow(const Study& study);
  const std::vector<int32_t>& order() const { return order_; }      // ids of trials, the best first
  const std::vector<int32_t>& unknown() const { return unknown_; }  // ids of open trials without a known loss
  // The loss of the first objective as the order uses it; infinite if it is unknown.
  double loss_at(const Study& study, int32_t id) const;

 private:
  void add_by_loss(const Study& study);
  void add_by_dominance(const Study& study);
  void merge(const Study& study, std::vector<std::pair<double, int32_t>> reported);
  std::vector<int32_t> ended_;  // ids of the ended trials, the best first
  // For studies with several objectives. The entries are in the order in which the trials ended. losses_ has all losses
  // of the first trial, then those of the second, and so on. ranks_ has for each trial its violation and the number of
  // trials that dominate it.
  std::vector<double> losses_;
  std::vector<std::pair<double, int64_t>> ranks_;
  std::vector<int32_t> order_, unknown_;
  size_t added_ = 0;
};

}  // namespace sinew::tune
