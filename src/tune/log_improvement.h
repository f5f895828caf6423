// Computes the logarithms of two functions of the normal distribution, with derivatives. They stay accurate far into
// the tail, where the plain values underflow to 0 and a search could not climb (Ament et al., "Unexpected improvements
// to expected improvement for Bayesian optimization", NeurIPS 2023).
#pragma once

namespace sinew::tune {

// log(pdf(z) + z cdf(z)), the logarithm of a standardised expected improvement, and its derivative; for any z.
struct LogImprovement {
  double value = 0, slope = 0;
};
LogImprovement log_improvement(double z);

// The logarithm of the standard normal distribution function, and its derivative; for any z.
LogImprovement log_normal_cdf(double z);

}  // namespace sinew::tune
