// Lists the architectures, and implements helpers that their makers share.
#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "model/makers.h"
#include "model/model.h"

namespace sinew::model {

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = {
      {"linear", make_linear, "one linear layer over the flattened input; PyTorch's default initialisation"},
      {"svm", make_linear, "one linear layer trained with hinge loss; PyTorch's default initialisation"},
      {"mlp", make_mlp, "hidden layers with activation, optional batch norm and dropout; PyTorch's defaults"},
      {"tabular", make_tabular,
       "tables: RealMLP-TD of Holzmueller et al. 2024; weights scaled by training samples, He+5 biases"},
      {"cnn", make_cnn, "3x3 convolution blocks, each halving the image, then a linear layer; PyTorch's defaults"},
      {"resnet18", make_resnet18, "He et al. 2016, basic blocks; Kaiming normal (fan out), batch norm at 1 and 0"},
      {"resnet34", make_resnet34, "He et al. 2016, basic blocks; as resnet18"},
      {"resnet50", make_resnet50, "He et al. 2016, bottlenecks with the stride in the 3x3; as resnet18"},
      {"lstm", make_lstm,
       "text: embedding, LSTM, one prediction for each token; else a classifier over rows; PyTorch's defaults"},
      {"program", make_program, "a .pt2 of torch.export, model.file; with the weights in the file"},
      {"torchscript", make_script, "a .pt of TorchScript, model.file; with the weights in the file"},
      {"library", make_library, "your C++ code, a shared object in model.file; initialised by its constructor"},
  };
  return list;
}

std::vector<size_t> parameters_like(const std::string& pattern, const std::vector<NamedTensor>& parameters,
                                    const std::string& option) {
  std::vector<size_t> indices;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (spec::fits_pattern(pattern, parameters[p].name)) indices.push_back(p);
  }
  if (!indices.empty()) return indices;
  throw Error("MODEL_PATTERN_MATCHES_NOTHING", option + ": no parameter matches '" + pattern + "'",
              parameters.empty() ? "the model has no parameters"
                                 : "the model has " + std::to_string(parameters.size()) + " parameters, from " +
                                       parameters.front().name + " to " + parameters.back().name);
}

namespace {

// Returns whether the model's file contains the weights.
bool keeps_weights(const std::string& name) {
  return name == "program" || name == "torchscript";
}

}  // namespace

std::unique_ptr<Model> make_model(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs,
                                  uint64_t seed) {
  for (const Architecture& architecture : architectures()) {
    if (options.name != architecture.name) continue;
    const RandomScope scope(derive(random_key({seed}), "init"));
    auto model = architecture.make(options, data, outputs);
    const bool from_file = !model_file_name(options.name).empty();
    if (from_file) model = with_checked_output(std::move(model), ExpectedOutput(options.file, data, outputs));
    const std::vector<NamedTensor> parameters = model->parameters();
    if (keeps_weights(options.name)) {
      reinitialise(options.reinit, parameters, model->buffers(), seed);
    } else {
      // The architecture has just initialised these weights, so make_model only checks the patterns. They take effect
      // in model.init_from, which does not load the parameters that they match.
      for (const std::string& pattern : options.reinit) parameters_like(pattern, parameters, "model.reinit");
    }
    for (const std::string& pattern : options.freeze) {
      for (const size_t p : parameters_like(pattern, parameters, "model.freeze"))
        parameters[p].tensor.set_requires_grad(false);
    }
    if (std::ranges::none_of(parameters, [](const NamedTensor& known) { return known.tensor.requires_grad(); }))
      throw nothing_to_train(options.file, "take patterns out of model.freeze, or set requires_grad in the model");
    return model;
  }
  throw Error("MODEL_UNKNOWN_NAME", "there is no architecture '" + options.name + "'", "run sinew schema for the list");
}

int64_t parameter_count(Model& model) {
  int64_t count = 0;
  for (const NamedTensor& parameter : model.parameters()) count += parameter.tensor.numel();
  return count;
}

void require_numbers(const data::DataInfo& data, const char* model) {
  if (data.input_dtype == DType::f32) return;
  throw Error("MODEL_DATA_MISMATCH", std::string("model '") + model + "' takes numbers or images, but the data is text",
              "use model: lstm for text");
}

void require_images(const data::DataInfo& data, const char* model) {
  if (data.input_dtype == DType::f32 && data.input_shape.size() == 3) return;
  std::ostringstream shape;
  for (const int64_t size : data.input_shape) shape << size << ' ';
  throw Error("MODEL_DATA_MISMATCH",
              std::string("model '") + model + "' takes images [channels, height, width], but a sample is [" +
                  shape.str() + "]",
              "use model: mlp for tables, model: lstm for text");
}

std::string activation_of(const spec::ModelOptions& options, data::Task task) {
  if (options.activation != "auto") return options.activation;
  if (options.name != "tabular") return "relu";
  return task == data::Task::regression ? "mish" : "selu";
}

torch::Tensor activate(const torch::Tensor& input, const std::string& name) {
  if (name == "relu" || name == "auto") return torch::relu(input);
  if (name == "gelu") return torch::gelu(input);
  if (name == "tanh") return torch::tanh(input);
  if (name == "silu") return torch::silu(input);
  if (name == "selu") return torch::selu(input);
  if (name == "mish") return at::mish(input);
  throw Error("MODEL_UNKNOWN_NAME", "there is no activation '" + name + "'",
              "use relu, gelu, tanh, silu, selu or mish");
}

}  // namespace sinew::model
