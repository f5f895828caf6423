// Judges a range test of the learning rate: pure functions. Private to train/.
#pragma once

#include <cmath>
#include <vector>

#include "train/train.h"

namespace sinew::train {

// The learning rate of a step of the test.
double rate_at(const RateRange& range, int64_t step);

// Follows the losses of a test.
class RateTest {
 public:
  // Returns whether the test may end after this loss, because it is, smoothed, far above the best one.
  bool diverges_with(double loss);

 private:
  double sum_ = 0, weights_ = 0, best_ = INFINITY;
};

// Fills the finding from the points. Throws Error (LR_NOT_FOUND) if the loss does not fall by more than its noise.
RateFinding judge_rates(std::vector<RatePoint> points, bool diverged);

}  // namespace sinew::train
