// Makes linear models and multi-layer perceptrons, which read the flattened input.
#include "model/makers.h"
#include "model/module_model.h"

namespace sinew::model {
namespace {

struct MlpNet : torch::nn::Module {
  MlpNet(const spec::ModelOptions& options, int64_t inputs, int64_t outputs)
      : activation(options.activation), dropout(options.dropout) {
    int64_t width = inputs;
    for (const int64_t size : options.hidden) {
      linears->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, size).bias(options.norm != "batch")));
      if (options.norm == "batch") norms->push_back(torch::nn::BatchNorm1d(size));
      width = size;
    }
    register_module("hidden", linears);
    if (!norms->is_empty()) register_module("norms", norms);
    output = register_module("output", torch::nn::Linear(width, outputs));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = input.flatten(1);  // [batch, inputs]
    for (size_t i = 0; i < linears->size(); ++i) {
      x = linears[i]->as<torch::nn::Linear>()->forward(x);
      if (!norms->is_empty()) x = norms[i]->as<torch::nn::BatchNorm1d>()->forward(x);
      x = activate(x, activation);
      if (dropout > 0) x = torch::dropout(x, dropout, is_training());
    }
    return output->forward(x);  // [batch, outputs]
  }

  std::string activation;
  double dropout;
  torch::nn::ModuleList linears, norms;
  torch::nn::Linear output{nullptr};
};

}  // namespace

std::unique_ptr<Model> make_mlp(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  require_numbers(data, "mlp");
  return as_model(std::make_shared<MlpNet>(options, element_count(data.input_shape), outputs));
}

std::unique_ptr<Model> make_linear(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  require_numbers(data, options.name.c_str());
  spec::ModelOptions flat = options;
  flat.hidden.clear();
  return as_model(std::make_shared<MlpNet>(flat, element_count(data.input_shape), outputs));
}

}  // namespace sinew::model
