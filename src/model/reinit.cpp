// Gives some parameters new initial values, such as the head of a model whose other weights are kept.
#include <algorithm>
#include <cmath>

#include "model/model.h"

namespace sinew::model {
namespace {

std::string leaf_of(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool ends_in_bias(const std::string& leaf) {
  return leaf == "bias" || leaf.starts_with("bias_") || leaf == "in_proj_bias" || leaf == "beta";
}

int64_t fan_in(const torch::Tensor& matrix) {
  return matrix.size(0) == 0 ? 0 : matrix.numel() / matrix.size(0);
}

// Returns the matrix or kernel that a bias belongs to: "head.weight" for "head.bias", "weight_ih_l0" for "bias_ih_l0".
const torch::Tensor* weight_beside(const std::string& name, const std::vector<NamedTensor>& parameters) {
  const std::string begin = name.substr(0, name.size() - leaf_of(name).size());
  std::string leaf = leaf_of(name);
  if (const size_t at = leaf.find("bias"); at != std::string::npos) leaf.replace(at, 4, "weight");
  const auto found = std::ranges::find(parameters, begin + leaf, &NamedTensor::name);
  return found == parameters.end() || found->tensor.dim() < 2 ? nullptr : &found->tensor;
}

void uniform_within(const torch::Tensor& tensor, int64_t fan) {
  const double limit = fan > 0 ? 1.0 / std::sqrt(static_cast<double>(fan)) : 0.0;
  tensor.uniform_(-limit, limit);
}

void reset_parameter(const NamedTensor& parameter, const std::vector<NamedTensor>& parameters) {
  const torch::Tensor tensor = parameter.tensor.detach();
  const std::string leaf = leaf_of(parameter.name);
  if (tensor.dim() >= 2) {
    uniform_within(tensor, fan_in(tensor));
  } else if (!ends_in_bias(leaf)) {
    tensor.fill_(leaf == "weight" || leaf == "gamma" ? 1.0 : 0.0);
  } else if (const torch::Tensor* weight = weight_beside(parameter.name, parameters)) {
    uniform_within(tensor, fan_in(*weight));
  } else {
    tensor.zero_();
  }
}

}  // namespace

void reinitialise(const std::vector<std::string>& patterns, const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  for (const std::string& pattern : patterns) {
    for (const size_t p : parameters_like(pattern, parameters, "model.reinit")) {
      // The key depends on the name alone. So the result depends neither on the other patterns nor on the order in the
      // file.
      const RandomScope scope(derive(derive(random_key({seed}), "reinit"), parameters[p].name));
      reset_parameter(parameters[p], parameters);
    }
    for (const NamedTensor& buffer : buffers) {
      if (!spec::fits_pattern(pattern, buffer.name)) continue;
      const std::string leaf = leaf_of(buffer.name);
      if (leaf == "running_mean" || leaf == "num_batches_tracked") buffer.tensor.zero_();
      if (leaf == "running_var") buffer.tensor.fill_(1);
    }
  }
}

}  // namespace sinew::model
