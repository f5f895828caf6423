// The kernel of the Gaussian processes: how similar two points of a search space are.
//
// The kernel is a product over parameters, s * prod_i (1 + v_i / s * m_i). Multiplied out, it is the sum of a constant,
// an effect of every parameter alone, of every pair, and so on (Durrande, Ginsbourger, Roustant, Carraro, "ANOVA
// kernels", 2012; Duvenaud, Nickisch, Rasmussen, "Additive Gaussian processes", NeurIPS 2011). With a large s it is
// nearly a sum of functions of one parameter each; with a small s it is nearly a plain product kernel. The fit chooses
// s from the data. For numbers, m_i is the Matern 5/2 function of the distance. For categories, m_i is 1 if they are
// equal, else 0. If the parameter is inactive in either point, m_i is 0, because an inactive parameter has no effect.
// Each factor is a valid kernel, so the product is also a valid kernel, with or without conditions.
//
// Points are rows of the unit cube, with NaN where a parameter is inactive. Private to tune/.
#pragma once

#include <eigen3/Eigen/Core>
#include <vector>

namespace sinew::tune {

// How a parameter enters the kernel.
struct Axis {
  bool category = false;
};

// The observed points. Eigen stores columns one after another, so a loop over all points of one parameter reads memory
// in order.
using Points = Eigen::MatrixXd;  // [points, parameters]

// The layout of the logarithms of all kernel parameters in one vector: the scale s, the noise variance, the effects
// v_i, and the length scales. A category has a length scale too, but nothing uses it.
struct KernelLayout {
  Eigen::Index axes = 0;
  Eigen::Index scale() const { return 0; }
  Eigen::Index noise() const { return 1; }
  Eigen::Index effect(Eigen::Index axis) const { return 2 + axis; }
  Eigen::Index length(Eigen::Index axis) const { return 2 + axes + axis; }
  Eigen::Index size() const { return 2 + 2 * axes; }
};

class Kernel {
 public:
  Kernel(std::vector<Axis> axes, const Eigen::VectorXd& log_parameters);

  double noise() const { return noise_; }
  // The prior variance at a point. It depends only on which parameters are active.
  double variance(const Eigen::VectorXd& x) const;
  // The kernel between x and the first `count` points.
  void row(const Eigen::VectorXd& x, const Points& points, Eigen::Index count, double* out) const;
  // The derivatives of row() by the coordinates of x, one column for each parameter; zero for categories and inactive
  // parameters. `values` is the result of row().
  void row_slopes(const Eigen::VectorXd& x, const Points& points, Eigen::Index count, const double* values,
                  Eigen::MatrixXd& out) const;
  // The kernel between all pairs of points, without noise. Only the lower half and the diagonal are filled.
  Eigen::MatrixXd matrix(const Points& points, Eigen::Index count) const;
  // Returns, for each kernel parameter, the sum over all pairs of weight * d kernel / d log parameter. `weighted` is
  // the weight times the kernel; it is symmetric, and only its lower half is read. The entry of the noise is 0, because
  // noise is not part of the kernel.
  Eigen::VectorXd weighted_slopes(const Points& points, Eigen::Index count, const Eigen::MatrixXd& weighted) const;

 private:
  std::vector<Axis> axes_;
  double scale_ = 1, noise_ = 0;
  std::vector<double> ratio_;    // v_i / s
  std::vector<double> inverse_;  // sqrt(5) / length
};

}  // namespace sinew::tune
