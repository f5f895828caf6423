#include "tune/gp_acquisition.h"

#include <cmath>

#include "tune/log_improvement.h"

namespace sinew::tune {

using Eigen::VectorXd;

LogBelow log_below(double bound, const Normal& normal) {
  const double spread = std::sqrt(normal.variance), z = (bound - normal.mean) / spread;
  const LogImprovement h = log_improvement(z);
  return {h.value + std::log(spread), -h.slope / spread, 1 - h.slope * z};
}

VectorXd by_coordinates(const Normal& normal, const NormalSlopes& slopes, double by_mean, double by_log_spread) {
  return by_mean * slopes.mean + (0.5 * by_log_spread / normal.variance) * slopes.variance;
}

std::vector<double> LogExpectedImprovement::at_all(const Points& points) const {
  std::vector<double> scores;
  for (const Normal& normal : process_.at_all(points)) scores.push_back(log_below(best_, normal).value);
  return scores;
}

double LogExpectedImprovement::at(const VectorXd& x, VectorXd& slope) const {
  NormalSlopes slopes;
  const Normal normal = process_.at(x, slopes);
  const LogBelow below = log_below(best_, normal);
  slope = by_coordinates(normal, slopes, below.by_mean, below.by_log_spread);
  return below.value;
}

std::vector<double> LogFeasibility::at_all(const Points& points) const {
  std::vector<double> scores(static_cast<size_t>(points.rows()), 0.0);
  if (other_ != nullptr) scores = other_->at_all(points);
  for (const GaussianProcess& constraint : constraints_) {
    const std::vector<Normal> normals = constraint.at_all(points);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] += log_normal_cdf(-normals[i].mean / std::sqrt(normals[i].variance)).value;
    }
  }
  return scores;
}

double LogFeasibility::at(const VectorXd& x, VectorXd& slope) const {
  slope.setZero(x.size());
  double sum = other_ != nullptr ? other_->at(x, slope) : 0;
  NormalSlopes slopes;
  for (const GaussianProcess& constraint : constraints_) {
    const Normal normal = constraint.at(x, slopes);
    const double spread = std::sqrt(normal.variance), z = -normal.mean / spread;
    const LogImprovement cdf = log_normal_cdf(z);
    sum += cdf.value;
    slope += by_coordinates(normal, slopes, -cdf.slope / spread, -cdf.slope * z);
  }
  return sum;
}

}  // namespace sinew::tune
