// The ended trials of a study from the best to the worst, kept up as the study grows.
//
// Feasible before infeasible, those by what they violate; then by loss, with several objectives by how many trials
// dominate it (Fonseca, Fleming 1993); then the earlier told. A pruned trial without a value goes by its last report.
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

class Ranking {
 public:
  // Takes in what was told since the last call.
  void follow(const Study& study);
  const std::vector<int32_t>& order() const { return order_; }  // ids of trials
  // The loss the order goes by (of the first objective).
  double loss_at(const Study& study, int32_t id) const;

 private:
  void sort_by_rank(const Study& study);
  std::vector<int32_t> order_;
  size_t taken_ = 0;
};

}  // namespace sinew::tune
