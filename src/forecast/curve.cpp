#include "forecast/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace sinew::forecast {
namespace {

constexpr double kStretches[] = {0.5, 0.75, 1.0};
constexpr double kOffsets[] = {0, 1, 4};  // added to the step in a power law
// The least noise that the model assumes, as a fraction of the range of the curve.
constexpr double kPrecision = 1e-3;
constexpr double kRise = 0.2;  // the prior weight of a fit whose loss rises; a fit whose loss falls has 1

struct Sums {
  double shape = 0, square = 0, product = 0;
};

}  // namespace

std::vector<double> shapes_at(double step, double end, const ShapeGrid& grid) {
  std::vector<double> shapes;
  for (const double stretch : kStretches) {
    for (int i = 0; i < grid.rates; ++i) {  // time scales from 3 times the length of a training down to 0.9 % of it
      const double time = end * 3 * std::pow(0.003, static_cast<double>(i) / (grid.rates - 1));
      shapes.push_back(std::exp(-std::pow(step / time, stretch)));
    }
  }
  for (const double offset : kOffsets) {
    for (int i = 0; i < grid.powers; ++i) {
      const double power = 0.1 * std::pow(20, static_cast<double>(i) / (grid.powers - 1));
      shapes.push_back(std::pow(step + offset, -power));
    }
  }
  shapes.push_back(0);
  return shapes;
}

double Prediction::mean() const {
  double sum = 0;
  for (const Component& component : components) sum += component.weight * component.mean;
  return sum;
}

double Prediction::deviation() const {
  const double center = mean();
  double sum = 0;
  for (const Component& component : components)
    sum += component.weight *
           (component.deviation * component.deviation + (component.mean - center) * (component.mean - center));
  return std::sqrt(sum);
}

double Prediction::probability_below(double value) const {
  double sum = 0;
  for (const Component& component : components) {
    sum += component.weight * 0.5 * std::erfc((component.mean - value) / (component.deviation * std::numbers::sqrt2));
  }
  return sum;
}

CurveModel::CurveModel(double end) : end_(end), at_end_(shapes_at(end, end)) {}

const std::vector<double>& CurveModel::known_shapes_at(double step) {
  const auto [found, fresh] = known_.try_emplace(step);
  if (fresh) found->second = shapes_at(step, end_);
  return found->second;
}

Prediction CurveModel::predict(std::span<const double> steps, std::span<const double> losses, double floor) {
  const size_t n = steps.size();
  SINEW_CHECK(n >= 2 && losses.size() == n, n, losses.size());
  std::vector<Sums> sums(at_end_.size());
  double loss_sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto& shapes = known_shapes_at(steps[i]);
    for (size_t j = 0; j < shapes.size(); ++j) {
      sums[j].shape += shapes[j];
      sums[j].square += shapes[j] * shapes[j];
      sums[j].product += shapes[j] * losses[i];
    }
    loss_sum += losses[i];
  }
  const auto count = static_cast<double>(n);
  const double loss_mean = loss_sum / count;
  double spread = 0, low = losses[0], high = losses[0];
  for (const double loss : losses) {
    spread += (loss - loss_mean) * (loss - loss_mean);
    low = std::min(low, loss);
    high = std::max(high, loss);
  }
  const double precision = std::max(kPrecision * (high - low), 1e-12 * (1 + std::abs(loss_mean)));
  const auto& shapes = at_end_;
  Prediction prediction;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < shapes.size(); ++j) {
    const double mean = sums[j].shape / count, variation = sums[j].square - count * mean * mean;
    const bool flat = variation <= 1e-12 * (1e-12 + sums[j].square);
    // The shape is constant over these reports, so it is the same as the last shape.
    if (flat && j + 1 < shapes.size()) continue;
    const double slope = flat ? 0 : (sums[j].product - mean * loss_sum) / variation;
    const double left = std::max(spread - slope * slope * (flat ? 0 : variation), 0.0) + count * precision * precision;
    const double ends = loss_mean + slope * (shapes[j] - mean);
    if (ends < floor) continue;
    const double noise = left / std::max(count - 3, 1.0);
    const double far = flat ? 0 : (shapes[j] - mean) * (shapes[j] - mean) / variation;
    most = std::max(most, -0.5 * count * std::log(left));
    prediction.components.push_back(
        {-0.5 * count * std::log(left) + std::log(slope < 0 ? kRise : 1), ends, std::sqrt(noise * (1 / count + far))});
  }
  if (prediction.components.empty()) return {{{1, std::max(floor, losses[n - 1]), std::max(high - low, precision)}}};
  double total = 0;
  for (auto& component : prediction.components) total += component.weight = std::exp(component.weight - most);
  for (auto& component : prediction.components) {
    component.weight /= total;
    component.deviation = std::max(component.deviation, precision);
  }
  return prediction;
}

}  // namespace sinew::forecast
