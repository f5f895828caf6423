// How alike two points of a search space are, to a Gaussian process.
//
// The kernel is a product over parameters, s * prod_i (1 + v_i / s * m_i): multiplied out it is a constant, an effect
// of every parameter alone, of every pair, and so on (Durrande, Ginsbourger, Roustant, Carraro, "ANOVA kernels", 2012;
// Duvenaud, Nickisch, Rasmussen, "Additive Gaussian processes", NeurIPS 2011). A large s makes it a sum of functions of
// one parameter each, a small one a plain product kernel; the data say which. m_i is Matern 5/2 of the distance along a
// number, 1 or 0 for equal or different categories, and 0 where the parameter is inactive in one of the points: what is
// not there has no effect. Every factor is a kernel, so the product is one, conditions or not.
//
// Points are rows of the unit cube, NaN where inactive. For tune/ only.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace sinew::tune {

// How a parameter enters the kernel.
struct Axis {
  bool category = false;
};

// The points a process has seen: one column a parameter, so that a loop over points runs through memory.
using Points = Eigen::MatrixXd;  // [points, axes]

// The numbers a process is fitted by, all logarithms, in one vector: the scale s, the noise variance, the effects v_i
// of all axes, the lengths of all axes (of categories unused).
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
  // The prior variance at a point: depends only on which of its parameters are active.
  double variance(const Eigen::VectorXd& x) const;
  // Between x and the first `count` points.
  void row(const Eigen::VectorXd& x, const Points& points, Eigen::Index count, double* out) const;
  // The derivatives of row() by the coordinates of x, one column an axis; zero for categories and where inactive.
  // `values` is what row() gave.
  void row_slopes(const Eigen::VectorXd& x, const Points& points, Eigen::Index count, const double* values,
                  Eigen::MatrixXd& out) const;
  // Between all points, without noise; the lower half and the diagonal.
  Eigen::MatrixXd matrix(const Points& points, Eigen::Index count) const;
  // For each fitted number the sum over all pairs of weight * d kernel / d number; `weighted` is the weight times the
  // kernel, symmetric, the lower half given. Noise is not the kernel's: its entry is 0.
  Eigen::VectorXd weighted_slopes(const Points& points, Eigen::Index count, const Eigen::MatrixXd& weighted) const;

 private:
  std::vector<Axis> axes_;
  double scale_ = 1, noise_ = 0;
  std::vector<double> ratio_;    // v_i / s
  std::vector<double> inverse_;  // sqrt(5) / length
};

}  // namespace sinew::tune
