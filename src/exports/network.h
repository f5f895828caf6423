// Private to exports/: the computation of a built-in architecture as a list of steps. model/ defines the architectures
// as code; this list says the same as data, from which ONNX and TorchScript are made. Every export is compared with the
// code, so the two cannot differ unnoticed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "data/data.h"
#include "model/model.h"
#include "spec/spec.h"

namespace sinew::exports {

struct Step {
  enum class Op {
    flatten,      // [batch, ...] to [batch, all]
    linear,       // parameters name.weight and, if there is one, name.bias
    batch_norm,   // name.weight, name.bias, name.running_mean, name.running_var
    activation,   // name: relu, gelu, tanh, silu, selu or mish
    convolution,  // name.weight and, if there is one, name.bias
    max_pool,
    mean_pixels,  // the mean of each channel: [batch, channels]
    sum,          // of two values
    image_rows,   // [batch, channels, height, width] to [batch, height, size]
    table_rows,   // [batch, columns] to [batch, columns, 1]
    embedding,    // name.weight
    lstm,         // name.weight_ih_l0, ...
    last,         // [batch, time, size] to [batch, size]
    subtract,     // the vector `name`
    multiply,     // by the vector `name`
    soft_clip,    // x / sqrt(1 + (x / 3)^2)
    waves,        // [batch, numbers] to [batch, numbers * size]: name.cycles, name.shift, name.matrix, name.offset
    join,         // of several values, along the columns
    blend,        // of two values: the first plus the vector `name` times the difference
    clamp         // to the vectors name.low and name.high
  } op;
  std::vector<size_t> inputs;  // values: 0 is the model's input, and step i makes value i + 1
  std::string name = {};
  int64_t kernel = 1, stride = 1, padding = 0;  // convolution, max_pool
  int64_t size = 0, layers = 1;                 // image_rows: numbers of a row; lstm: hidden size, layers
  bool bidirectional = false;                   // lstm
};

// The weights of a model by name, float32, and where a step finds its own.
class Weights {
 public:
  Weights(model::Model& model, const spec::ModelOptions& options, const data::DataInfo& data);
  bool contains(const std::string& name) const;
  const torch::Tensor& at(const std::string& name) const;              // throws Error if there is none
  const std::vector<model::NamedTensor>& all() const { return all_; }  // with the buffers

  // The weights that the steps use. Those of model: tabular are computed from the model's: choices of columns are
  // matrices, and the gain of a layer is a part of its weights.
  std::vector<model::NamedTensor> used() const;

 private:
  // Adds a weight that is computed from the model's weight `from`, which the steps do not use then; "": from none.
  void derive(const std::string& name, const torch::Tensor& tensor, const std::string& from);
  void derive_layer(const std::string& name, bool ntk);
  void derive_tabular(const spec::ModelOptions& options, const data::DataInfo& data);

  std::vector<model::NamedTensor> all_, derived_;
  std::set<std::string> replaced_;
};

// Throws Error for a model of the user's own.
std::vector<Step> network_of(const spec::ModelOptions& options, const data::DataInfo& data);

constexpr double kBatchNormEpsilon = 1e-5;  // torch::nn::BatchNorm's default

}  // namespace sinew::exports
