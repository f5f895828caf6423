// Where a learning curve will end, from its beginning.
//
// For the curve pruner. A curve is a + b * shape(step) and noise; the shapes are a grid of stretched exponentials and
// powers (the families of Domhan, Springenberg, Hutter, "Speeding up automatic hyperparameter optimization of deep
// neural networks by extrapolation of learning curves", IJCAI 2015). For each shape a and b are least squares; a shape
// weighs by how well it explains the curve with an unknown level of noise, and the prediction is the mixture of them
// all. So few points give a wide prediction and a clear curve a sharp one.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "tune/tune.h"

namespace sinew::tune {

// A mixture of normals, for a loss.
struct Prediction {
  struct Part {
    double weight, mean, deviation;
  };
  std::vector<Part> parts;  // weights sum to 1
  double mean() const;
  double deviation() const;
  double probability_below(double value) const;
};

// Predicts curves that all end at the same step. Keeps the shapes at the steps it has met, nothing else.
class CurveModel {
 public:
  explicit CurveModel(double end);
  // `losses` at growing `steps` (at least 2 of them, finite, at most `end`). No shape is believed that ends below
  // `floor`.
  Prediction predict(std::span<const double> steps, std::span<const double> losses, double floor);

 private:
  const std::vector<double>& shapes_at(double step);
  double end_;
  std::vector<double> at_end_;
  std::map<double, std::vector<double>> known_;
};

}  // namespace sinew::tune
