// What a point is worth trying.
//
// The logarithm of expected improvement, exact down to where improvement is hopeless, with its derivatives: Ament et
// al., "Unexpected improvements to expected improvement for Bayesian optimization" (NeurIPS 2023).
#pragma once

namespace sinew::tune {

// log(pdf(z) + z cdf(z)) for any z, and its derivative.
struct LogImprovement {
  double value = 0, slope = 0;
};
LogImprovement log_improvement(double z);

// log of the standard normal's distribution function, and its derivative; for any z.
LogImprovement log_normal_cdf(double z);

}  // namespace sinew::tune
