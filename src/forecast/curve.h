// Part of forecast.h: predicts where a learning curve will end, from its beginning.
//
// The curve pruner of tune/ uses this model: a curve is a + b * shape(step) plus noise. The shapes are a grid of
// stretched exponentials and powers, the families of Domhan, Springenberg, Hutter, "Speeding up automatic
// hyperparameter optimization of deep neural networks by extrapolation of learning curves" (IJCAI 2015). For each
// shape, a and b are fitted by least squares. The weight of a shape tells how well it explains the curve, with noise of
// unknown strength. The prediction is the weighted mixture of all shapes: wide after a few noisy points, and narrow
// after a smooth curve.
#pragma once

#include <map>
#include <span>
#include <vector>

namespace sinew::forecast {

// How finely the time scales of the exponentials and the exponents of the powers are divided.
struct ShapeGrid {
  int rates = 80, powers = 24;
};
// Returns the value of every shape at one step, for a training that ends at `end`. The last shape is the constant.
std::vector<double> shapes_at(double step, double end, const ShapeGrid& grid = {});

// A predicted loss: a mixture of normal distributions.
struct Prediction {
  struct Component {
    double weight, mean, deviation;  // `deviation` is the standard deviation
  };
  std::vector<Component> components;  // their weights sum to 1
  double mean() const;
  double deviation() const;
  double probability_below(double value) const;
};

// Predicts curves that all end at the same step. The only state is a cache of shape values at the steps seen so far.
class CurveModel {
 public:
  explicit CurveModel(double end);
  // `losses` are the values at the ascending `steps`: at least 2, all finite, with no step above `end`. A shape that
  // ends below `floor` gets no weight.
  Prediction predict(std::span<const double> steps, std::span<const double> losses, double floor);

 private:
  const std::vector<double>& known_shapes_at(double step);
  double end_;
  std::vector<double> at_end_;
  std::map<double, std::vector<double>> known_;
};

}  // namespace sinew::forecast
