#include "tune/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

namespace sinew::tune {
namespace {

using Eigen::VectorXd;

constexpr size_t kPairs = 8;
constexpr double kArmijo = 1e-4;
constexpr int kMostHalvings = 12;

// The last steps and the changes of the gradient along them, the newest last.
class Curvature {
 public:
  void add(const VectorXd& step, const VectorXd& change) {
    const double product = step.dot(change);
    // The function is not convex along this step: the pair would spoil the model.
    if (product <= 1e-12 * step.norm() * change.norm()) return;
    pairs_.push_back({step, change, 1 / product});
    if (pairs_.size() > kPairs) pairs_.pop_front();
  }

  bool empty() const { return pairs_.empty(); }
  void clear() { pairs_.clear(); }

  // Returns minus the approximate inverse Hessian times the gradient, by the two-loop recursion of Nocedal.
  VectorXd direction(VectorXd gradient) const {
    std::vector<double> weights(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      weights[i] = pairs_[i].scale * pairs_[i].step.dot(gradient);
      gradient -= weights[i] * pairs_[i].change;
    }
    if (!pairs_.empty()) gradient /= pairs_.back().scale * pairs_.back().change.squaredNorm();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const double back = pairs_[i].scale * pairs_[i].change.dot(gradient);
      gradient += (weights[i] - back) * pairs_[i].step;
    }
    return -gradient;
  }

 private:
  struct Pair {
    VectorXd step, change;
    double scale;
  };
  std::deque<Pair> pairs_;
};

// The gradient, with 0 for each variable that is at a bound and that a step against the gradient would move out of the
// box.
VectorXd free_part(const VectorXd& x, VectorXd gradient, const VectorXd& low, const VectorXd& high) {
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if ((x[i] <= low[i] && gradient[i] > 0) || (x[i] >= high[i] && gradient[i] < 0)) gradient[i] = 0;
  }
  return gradient;
}

}  // namespace

Minimum minimise(const SmoothFunction& function, VectorXd x, const VectorXd& low, const VectorXd& high,
                 const LbfgsOptions& options) {
  x = x.cwiseMax(low).cwiseMin(high);
  VectorXd gradient(x.size());
  Minimum best{x, function(x, gradient), 1};
  if (!std::isfinite(best.value)) return best;
  Curvature curvature;
  while (best.evaluations < options.most_evaluations) {
    const VectorXd moving = free_part(x, gradient, low, high);
    if (moving.lpNorm<Eigen::Infinity>() < options.gradient_tolerance) break;
    VectorXd direction = curvature.direction(moving);
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      if (moving[i] == 0) direction[i] = 0;
    }
    // The function does not fall in this direction: restart with the gradient.
    if (direction.dot(moving) > -1e-12 * direction.norm() * moving.norm()) {
      curvature.clear();
      direction = -moving;
    }
    double length = std::min(1.0, options.longest_step / direction.lpNorm<Eigen::Infinity>());
    if (curvature.empty()) length = std::min(length, 0.25 / direction.lpNorm<Eigen::Infinity>());
    VectorXd next, next_gradient(x.size());
    double value = 0;
    bool found = false;
    for (int halvings = 0; halvings < kMostHalvings && best.evaluations < options.most_evaluations; ++halvings) {
      next = (x + length * direction).cwiseMax(low).cwiseMin(high);
      value = function(next, next_gradient);
      ++best.evaluations;
      found = std::isfinite(value) && value <= best.value + kArmijo * gradient.dot(next - x);
      if (found) break;
      length *= 0.4;
    }
    if (!found) {
      if (curvature.empty()) break;
      curvature.clear();
      continue;
    }
    curvature.add(next - x, next_gradient - gradient);
    const double fall = best.value - value;
    x = next;
    gradient = next_gradient;
    best.x = x;
    best.value = value;
    if (fall < options.value_tolerance * (1 + std::abs(value))) break;
  }
  return best;
}

}  // namespace sinew::tune
