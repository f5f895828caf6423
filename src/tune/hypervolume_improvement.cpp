// Computes the expected hypervolume improvement, box by box. Along one objective of a box from l to u, a value y gains
// max(0, u - y) - max(0, l - y). The expectation of this gain is a difference of two expected improvements. The
// objectives are independent, so a box contributes the product over its objectives.
#include <cmath>
#include <limits>

#include "tune/gp_acquisition.h"
#include "tune/multi_objective.h"

namespace sinew::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// log(E[max(0, high - Y)] - E[max(0, low - Y)]).
LogBelow log_between(double low, double high, const Normal& normal) {
  const LogBelow upper = log_below(high, normal);
  if (low == -kInfinity) return upper;
  const LogBelow lower = log_below(low, normal);
  const double ratio = std::exp(lower.value - upper.value), rest = 1 - ratio;
  if (!(rest > 1e-12)) return {-kInfinity, 0, 0};
  return {upper.value + std::log1p(-ratio), (upper.by_mean - ratio * lower.by_mean) / rest,
          (upper.by_log_spread - ratio * lower.by_log_spread) / rest};
}

// Returns the logarithm of the sum over all boxes. If `slopes` is not null, sets the derivatives by the mean and by the
// log standard deviation of each objective.
double log_gain(const std::vector<Box>& boxes, const std::vector<Normal>& normals, std::vector<LogBelow>* slopes) {
  const size_t m = normals.size();
  std::vector<LogBelow> parts(boxes.size() * m);
  std::vector<double> logs(boxes.size(), 0.0);
  double most = -kInfinity;
  for (size_t b = 0; b < boxes.size(); ++b) {
    for (size_t k = 0; k < m; ++k) {
      parts[b * m + k] = log_between(boxes[b].low[k], boxes[b].high[k], normals[k]);
      logs[b] += parts[b * m + k].value;
    }
    most = std::max(most, logs[b]);
  }
  if (most == -kInfinity) return -1e300;
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  if (slopes != nullptr) {
    slopes->assign(m, {});
    for (size_t b = 0; b < boxes.size(); ++b) {
      const double share = std::exp(logs[b] - most) / sum;
      for (size_t k = 0; k < m && share > 0; ++k) {
        (*slopes)[k].by_mean += share * parts[b * m + k].by_mean;
        (*slopes)[k].by_log_spread += share * parts[b * m + k].by_log_spread;
      }
    }
  }
  return most + std::log(sum);
}

}  // namespace

std::vector<double> LogHypervolumeImprovement::at_all(const Points& points) const {
  std::vector<std::vector<Normal>> columns;
  for (const GaussianProcess& process : objectives_) columns.push_back(process.at_all(points));
  std::vector<double> scores;
  std::vector<Normal> normals(objectives_.size());
  for (size_t i = 0; i < static_cast<size_t>(points.rows()); ++i) {
    for (size_t k = 0; k < columns.size(); ++k) normals[k] = columns[k][i];
    scores.push_back(log_gain(boxes_, normals, nullptr));
  }
  return scores;
}

double LogHypervolumeImprovement::at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const {
  std::vector<Normal> normals;
  std::vector<NormalSlopes> by_x(objectives_.size());
  for (size_t k = 0; k < objectives_.size(); ++k) normals.push_back(objectives_[k].at(x, by_x[k]));
  std::vector<LogBelow> slopes(objectives_.size());
  const double gain = log_gain(boxes_, normals, &slopes);
  slope.setZero(x.size());
  for (size_t k = 0; k < objectives_.size(); ++k) {
    slope += by_coordinates(normals[k], by_x[k], slopes[k].by_mean, slopes[k].by_log_spread);
  }
  return gain;
}

}  // namespace sinew::tune
