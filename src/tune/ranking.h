// The trials of a study of which something is known, from the best to the worst, kept up as the study grows.
//
// Feasible before infeasible, those by what they violate; then by loss (Study::known_loss), with several objectives by
// how many trials dominate it (Fonseca, Fleming 1993); then the earlier told. Trials that run or wait and have reported
// come by what is known so far.
#pragma once

#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

class Ranking {
 public:
  // Takes in what happened since the last call.
  void follow(const Study& study);
  const std::vector<int32_t>& order() const { return order_; }      // ids of trials
  const std::vector<int32_t>& unknown() const { return unknown_; }  // ids of running trials without a report
  // The loss the order goes by (of the first objective).
  double loss_at(const Study& study, int32_t id) const;

 private:
  void add_by_loss(const Study& study);
  void add_by_dominance(const Study& study);
  void merge(const Study& study, std::vector<std::pair<double, int32_t>> reported);
  std::vector<int32_t> ended_;  // the ended ones in their order
  // Of several objectives, one an ended trial as they were told: its losses, behind one another, what it violates and
  // how many dominate it.
  std::vector<double> losses_;
  std::vector<std::pair<double, int64_t>> ranks_;
  std::vector<int32_t> order_, unknown_;
  size_t added_ = 0;
};

}  // namespace sinew::tune
