// Simple learners that need no learning rate. Checks ask them what the inputs alone can say about the targets. Private
// to train/.
#pragma once

#include <vector>

#include "train/sanity.h"

namespace sinew::train::sanity {

struct Samples {
  torch::Tensor inputs;  // [n, features], float32
  torch::Tensor labels;  // [n]
};

// Loads samples as rows of at most 1024 features: images are reduced to 16 x 16 pixels, and the first number of each
// target is the label.
Samples samples_of(const Subject& subject, data::Split split, const std::vector<int64_t>& chosen);

// A learner's predictions: scores [n, classes], or numbers [n, 1] in regression. They are centred: 0 says that the
// input tells nothing.
struct Learner {
  const char* name;
  torch::Tensor held;
  std::vector<torch::Tensor> others;
};

// Learners that saw the samples `learned`, and predict `held` and others. The learned samples standardise all inputs.
class Probes {
 public:
  // classes: 0 in regression
  Probes(int64_t classes, Samples learned, Samples held, std::vector<Samples> others = {});

  Learner linear() const;
  Learner neighbours() const;
  // How well scores predict the labels of samples, in standard deviations above chance.
  double z(const torch::Tensor& scores, const Samples& samples) const;
  // Classification: the class that a learner would name for each row of its scores.
  torch::Tensor named(const torch::Tensor& scores) const { return (scores + prior_).argmax(1); }
  const Samples& held() const { return held_; }
  const Samples& other(size_t i) const { return others_.at(i); }

  static torch::Tensor ranks(const torch::Tensor& values);  // in [0, 1)

 private:
  bool regression_;
  Samples learned_, held_;
  std::vector<Samples> others_;
  torch::Tensor wanted_, prior_;  // centred targets; the share of each class
};

}  // namespace sinew::train::sanity
