#include "tune/log_improvement.h"

#include <cmath>
#include <numbers>

namespace sinew::tune {
namespace {

const double kLogRoot2Pi = 0.5 * std::log(2 * std::numbers::pi);

// exp(x^2) erfc(x) for x >= 0: by erfc for small x, by a continued fraction for large x (Abramowitz, Stegun 7.1.14).
double scaled_erfc(double x) {
  if (x < 5) return std::exp(x * x) * std::erfc(x);
  double fraction = 0;
  for (int k = 40; k >= 1; --k) fraction = 0.5 * k / (x + fraction);
  return std::numbers::inv_sqrtpi / (x + fraction);
}

// cdf(z) / pdf(z) for z <= 0.
double mills(double z) {
  return std::sqrt(std::numbers::pi / 2) * scaled_erfc(-z / std::numbers::sqrt2);
}

}  // namespace

LogImprovement log_improvement(double z) {
  const double log_pdf = -0.5 * z * z - kLogRoot2Pi;
  if (z > -1) {
    const double cdf = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    const double h = std::exp(log_pdf) + z * cdf;
    return {std::log(h), cdf / h};
  }
  // The value is pdf * (1 + z * mills). The second factor cancels for very small z, where it equals 1/z^2 - 3/z^4 +
  // 15/z^6 - ...
  const double ratio = mills(z);
  double bracket = 1 + z * ratio;
  if (z < -50) {
    const double w = 1 / (z * z);
    bracket = w * (1 - 3 * w * (1 - 5 * w));
  }
  return {log_pdf + std::log(bracket), ratio / bracket};
}

LogImprovement log_normal_cdf(double z) {
  const double log_pdf = -0.5 * z * z - kLogRoot2Pi;
  if (z > -1) {
    const double cdf = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    return {std::log(cdf), std::exp(log_pdf) / cdf};
  }
  const double ratio = mills(z);
  return {log_pdf + std::log(ratio), 1 / ratio};
}

}  // namespace sinew::tune
