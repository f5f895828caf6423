// Private to model/: the layers of model: tabular (tabular.cpp says where they come from).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/data.h"
#include "spec/spec.h"

namespace sinew::model {

// Which input columns are numbers, which are used as they are, and which categories have an embedding.
struct TabularColumns {
  TabularColumns(const data::DataInfo& data, int64_t max_one_hot);

  torch::Tensor numbers;  // indices of columns
  torch::Tensor plain;    // indices of columns that encode small categories or are neither
  torch::Tensor yes, no;  // a category of two inputs becomes one number: 1, -1, or 0 without a value
  std::vector<data::InputGroup> embedded;
  int64_t flat() const { return numbers.numel() + plain.numel() + yes.numel(); }
  // Returns the numbers, then the plain columns, then the categories of two inputs: [batch, flat()].
  torch::Tensor flatten(const torch::Tensor& input) const;
};

// Scales columns by their quartiles, and clips them smoothly to -3 to 3.
struct RobustScaling : torch::nn::Module {
  explicit RobustScaling(int64_t columns);
  void fit(const torch::Tensor& x);
  torch::Tensor forward(const torch::Tensor& x) const;
  torch::Tensor center, factor;
};

// PBLD ("periodic bias linear DenseNet"): each number x becomes W cos(2 pi f x + phase) + b, and x itself.
struct NumericEmbedding : torch::nn::Module {
  NumericEmbedding(int64_t numbers, const spec::TabularOptions& options);
  torch::Tensor forward(const torch::Tensor& x) const;  // [batch, numbers] to [batch, numbers * size]
  torch::Tensor frequency, phase, weight, bias;
};

// A linear layer, and for a hidden layer its activation.
struct TabularLayer : torch::nn::Module {
  TabularLayer(int64_t inputs, int64_t outputs, const spec::ModelOptions& options, bool hidden);
  // Scales the weights so that each unit has the standard deviation 1 on these inputs, and sets the biases.
  void fit(const torch::Tensor& x);
  torch::Tensor forward(const torch::Tensor& x) const;
  std::string activation;  // empty: none
  double gain = 1;
  torch::Tensor weight, bias, strength;  // strength: undefined if the activation has no parameter
};

}  // namespace sinew::model
