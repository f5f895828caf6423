// Applies an optimizer's update block by block, with ATen's fused kernels where they exist. Private to train/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/blocks.h"
#include "train/train.h"

namespace sinew::train {

// Returns the names of the state tensors that an optimizer keeps for each parameter, such as "exp_avg".
std::vector<std::string> optimizer_state_names(const spec::OptimizerOptions& options);

class Optimizer {
 public:
  using Factors = model::Model::UpdateFactors;
  // Throws Error if a pattern of options.lr_scale matches no parameter. The optimizer keeps views into the memory of
  // `state` and `gradients`. Both must outlive the optimizer, and their memory must not move. `of_model`: the factors
  // of each parameter that the model asks for.
  Optimizer(const spec::OptimizerOptions& options, std::vector<Factors> of_model, TrainingState& state,
            const std::vector<torch::Tensor>& gradients, const Blocks& blocks);

  // Counts one more update of each present parameter. Called by one thread before the updates of a step. `decay`: the
  // factor of the weight decay in this step (optimizer.weight_decay_schedule).
  void begin(const std::vector<bool>& present, double decay = 1);
  // Updates one group of blocks. Any lane may call it; each group is updated once in a step.
  void update(size_t group, double lr);

 private:
  struct Lists {  // the present blocks of a group, in the form of the fused kernels
    std::vector<torch::Tensor> parameters, gradients, steps;
    std::map<std::string, std::vector<torch::Tensor>> state;
  };
  bool counts(size_t parameter, const Factors& factors) const;
  Lists present_blocks(size_t group, const Factors& factors) const;
  void adam(Lists& lists, double lr, double weight_decay, bool decoupled);
  void sgd(size_t group, const Factors& factors, double lr, double weight_decay);
  void rmsprop(Lists& lists, double lr, double weight_decay);

  spec::OptimizerOptions options_;
  TrainingState& state_;
  const Blocks& blocks_;
  std::vector<Factors> factors_;   // of each parameter: those of the model, and lr_scale
  std::vector<Factors> distinct_;  // the distinct ones: a kernel call takes one learning rate and one decay
  double weight_decay_ = 0;        // of the current step
  std::vector<bool> present_;
  std::vector<torch::Tensor> steps_;  // the number of updates of each parameter, as a float scalar for the kernels
  std::vector<torch::Tensor> parameter_views_, gradient_views_;  // one view for each block
  std::map<std::string, std::vector<torch::Tensor>> state_views_;
};

}  // namespace sinew::train
