#include "train/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sinew::train {
namespace {

std::vector<torch::Tensor> views_of(const std::vector<torch::Tensor>& tensors, const Blocks& blocks) {
  std::vector<torch::Tensor> views;
  views.reserve(blocks.blocks.size());
  for (const Block& block : blocks.blocks)
    views.push_back(flat(tensors[block.parameter]).slice(0, block.begin, block.end));
  return views;
}

using Factors = Optimizer::Factors;

std::pair<double, double> as_pair(const Factors& factors) {
  return {factors.lr, factors.weight_decay};
}

// Returns the learning rate factor that lr_scale gives each parameter. The last matching pattern counts.
std::vector<double> scales_of(const spec::OptimizerOptions& options, const TrainingState& state) {
  std::vector<double> factors(state.parameters.size(), 1.0);
  for (const std::string& item : options.lr_scale) {
    const auto scale = spec::parse_scale(item);
    SINEW_CHECK(scale, item);  // spec/ has checked it
    for (const size_t p : model::parameters_like(scale->pattern, state.parameters, "optimizer.lr_scale"))
      factors[p] = scale->factor;
  }
  return factors;
}

std::vector<Factors> scaled(std::vector<Factors> factors, const std::vector<double>& scales) {
  SINEW_CHECK(factors.size() == scales.size(), factors.size(), scales.size());
  for (size_t p = 0; p < factors.size(); ++p) factors[p].lr *= scales[p];
  return factors;
}

}  // namespace

std::vector<std::string> optimizer_state_names(const spec::OptimizerOptions& options) {
  if (options.name == "adam" || options.name == "adamw") return {"exp_avg", "exp_avg_sq"};
  if (options.name == "rmsprop") {
    return options.momentum > 0 ? std::vector<std::string>{"square_avg", "momentum_buffer"}
                                : std::vector<std::string>{"square_avg"};
  }
  SINEW_CHECK(options.name == "sgd", options.name);
  return options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

Optimizer::Optimizer(const spec::OptimizerOptions& options, std::vector<Factors> of_model, TrainingState& state,
                     const std::vector<torch::Tensor>& gradients, const Blocks& blocks)
    : options_(options),
      state_(state),
      blocks_(blocks),
      factors_(scaled(std::move(of_model), scales_of(options, state))),
      distinct_(factors_) {
  std::ranges::sort(distinct_, {}, as_pair);
  const auto repeated = std::ranges::unique(distinct_, {}, as_pair);
  distinct_.erase(repeated.begin(), repeated.end());
  std::vector<torch::Tensor> parameters;
  for (const auto& parameter : state.parameters) {
    parameters.push_back(parameter.tensor);
    steps_.push_back(torch::zeros({}));
  }
  parameter_views_ = views_of(parameters, blocks);
  gradient_views_ = views_of(gradients, blocks);
  for (const auto& [name, tensors] : state.optimizer) state_views_[name] = views_of(tensors, blocks);
}

void Optimizer::begin(const std::vector<bool>& present, double decay) {
  weight_decay_ = options_.weight_decay * decay;
  present_ = present;
  for (size_t p = 0; p < present.size(); ++p) {
    if (present[p]) steps_[p].fill_(static_cast<double>(++state_.optimizer_steps[p]));
  }
}

bool Optimizer::counts(size_t parameter, const Factors& factors) const {
  return present_[parameter] && as_pair(factors_[parameter]) == as_pair(factors);
}

Optimizer::Lists Optimizer::present_blocks(size_t group, const Factors& factors) const {
  Lists lists;
  for (size_t b = blocks_.groups[group].first; b < blocks_.groups[group].last; ++b) {
    const size_t p = blocks_.blocks[b].parameter;
    if (!counts(p, factors)) continue;
    lists.parameters.push_back(parameter_views_[b]);
    lists.gradients.push_back(gradient_views_[b]);
    lists.steps.push_back(steps_[p]);
    for (const auto& [name, views] : state_views_) lists.state[name].push_back(views[b]);
  }
  return lists;
}

void Optimizer::update(size_t group, double lr) {
  for (const Factors& factors : distinct_) {
    const double rate = lr * factors.lr, decay = weight_decay_ * factors.weight_decay;
    if (options_.name == "sgd") {
      sgd(group, factors, rate, decay);
      continue;
    }
    Lists lists = present_blocks(group, factors);
    if (lists.parameters.empty()) continue;
    if (options_.name == "rmsprop") {
      rmsprop(lists, rate, decay);
    } else {
      adam(lists, rate, decay, options_.name == "adamw");
    }
  }
}

void Optimizer::adam(Lists& lists, double lr, double weight_decay, bool decoupled) {
  const auto fused = [&](auto kernel) {
    kernel(lists.parameters, lists.gradients, lists.state["exp_avg"], lists.state["exp_avg_sq"], at::TensorList{},
           lists.steps, lr, options_.betas[0], options_.betas[1], weight_decay, options_.eps,
           /*amsgrad=*/false, /*maximize=*/false, std::nullopt, std::nullopt);
  };
  if (decoupled) {
    fused([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  } else {
    fused([](auto&&... arguments) { at::_fused_adam_(arguments...); });
  }
}

void Optimizer::sgd(size_t group, const Factors& factors, double lr, double weight_decay) {
  // The kernel takes one flag, is_first_step, for all its tensors. Parameters that get their first gradient in this
  // step therefore need a separate call.
  for (const bool first : {true, false}) {
    std::vector<torch::Tensor> parameters, gradients, momenta;
    for (size_t b = blocks_.groups[group].first; b < blocks_.groups[group].last; ++b) {
      const size_t p = blocks_.blocks[b].parameter;
      if (!counts(p, factors) || (state_.optimizer_steps[p] == 1) != first) continue;
      parameters.push_back(parameter_views_[b]);
      gradients.push_back(gradient_views_[b]);
      if (options_.momentum > 0) momenta.push_back(state_views_.at("momentum_buffer")[b]);
    }
    if (parameters.empty()) continue;
    at::_fused_sgd_(parameters, gradients, momenta, weight_decay, options_.momentum, lr, /*dampening=*/0.0,
                    options_.nesterov, /*maximize=*/false, /*is_first_step=*/first, {}, {});
  }
}

// Computes RMSprop as torch.optim.RMSprop does (Hinton 2012, lecture 6e), plain or with momentum. ATen has no fused
// kernel for it.
void Optimizer::rmsprop(Lists& lists, double lr, double weight_decay) {
  const auto alpha = options_.alpha;
  for (size_t i = 0; i < lists.parameters.size(); ++i) {
    torch::Tensor& parameter = lists.parameters[i];
    const torch::Tensor gradient =
        weight_decay != 0 ? lists.gradients[i].add(parameter, weight_decay) : lists.gradients[i];
    torch::Tensor& squares = lists.state["square_avg"][i];
    squares.mul_(alpha).addcmul_(gradient, gradient, 1 - alpha);
    const torch::Tensor root = squares.sqrt().add_(options_.eps);
    if (options_.momentum > 0) {
      torch::Tensor& momentum = lists.state["momentum_buffer"][i];
      momentum.mul_(options_.momentum).addcdiv_(gradient, root);
      parameter.add_(momentum, -lr);
    } else {
      parameter.addcdiv_(gradient, root, -lr);
    }
  }
}

}  // namespace sinew::train
