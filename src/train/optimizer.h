// Inside train/: one optimizer update over fixed blocks, on ATen's fused kernels where they exist.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/blocks.h"
#include "train/train.h"

namespace sinew::train {

// State tensors an optimizer keeps for each parameter ("exp_avg"), none for plain SGD.
std::vector<std::string> optimizer_state_names(const spec::OptimizerOptions& options);

class Optimizer {
 public:
  // Throws Error when a pattern of options.lr_scale fits no parameter.
  // Views into the memory of `state` and `gradients` are taken once; both must outlive the optimizer unmoved.
  Optimizer(const spec::OptimizerOptions& options, TrainingState& state, const std::vector<torch::Tensor>& gradients,
            const Blocks& blocks);

  // Counts one more update of each present parameter; before any update of the step, from one thread.
  void begin(const std::vector<bool>& present);
  // Updates one group of blocks; any lane, each group once a step.
  void update(size_t group, double lr);

 private:
  struct Lists {  // the present blocks of a group, as the fused kernels want them
    std::vector<torch::Tensor> parameters, gradients, steps;
    std::map<std::string, std::vector<torch::Tensor>> state;
  };
  bool counts(size_t parameter, double factor) const { return present_[parameter] && factors_[parameter] == factor; }
  Lists present_blocks(size_t group, double factor) const;
  void adam(Lists& lists, double lr, bool decoupled);
  void sgd(size_t group, double factor, double lr);
  void rmsprop(Lists& lists, double lr);

  spec::OptimizerOptions options_;
  TrainingState& state_;
  const Blocks& blocks_;
  std::vector<double> factors_;   // of the learning rate, by parameter (lr_scale)
  std::vector<double> distinct_;  // those, each once: a kernel takes one learning rate for all it is given
  std::vector<bool> present_;
  std::vector<torch::Tensor> steps_;                             // by parameter, a float scalar each
  std::vector<torch::Tensor> parameter_views_, gradient_views_;  // by block
  std::map<std::string, std::vector<torch::Tensor>> state_views_;
};

}  // namespace sinew::train
