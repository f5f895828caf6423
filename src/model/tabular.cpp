// Makes the network for tables: RealMLP-TD, a multi-layer perceptron whose parts and values were tuned on many tables
// (Holzmueller, Grinsztajn, Steinwart, "Better by default: strong pre-tuned MLPs and boosted trees on tabular data",
// NeurIPS 2024, arXiv:2407.04491, section 3 and appendix A). `sinew init` writes its training (data/propose.cpp).
//
// What differs, and why:
// - A category's inputs for missing and rare values stay inputs (the paper sets nothing for a missing value), because
//   they carry information, and because data/ encodes a table in the same way for every model.
// - Points of circles (dates), truth values and counts of words, which the paper's tables do not have, are scaled like
//   one-hot inputs, and have no embedding.
// - The quartiles and the initial weights are fitted to at most 10,000 training samples (Engine), always the same ones.
// - The decay of a parameter uses the factor of its learning rate once. (The authors' code multiplies by it twice.)
// - The best epoch is the one of the lowest validation loss. The paper takes the last one of the highest accuracy.
#include <limits>

#include "model/makers.h"
#include "model/module_model.h"
#include "model/tabular_parts.h"

namespace sinew::model {
namespace {

struct TabularNet : torch::nn::Module {
  TabularNet(const spec::ModelOptions& given, const data::DataInfo& data, int64_t outputs)
      : options(given), columns(data, given.tabular.max_one_hot) {
    options.activation = activation_of(options, data.task);
    const spec::TabularOptions& parts = options.tabular;
    int64_t width = columns.flat();
    if (parts.input_scaling == "robust" && columns.flat() > 0)
      scaling = register_module("input", std::make_shared<RobustScaling>(columns.flat()));
    if (parts.numeric_embedding == "pbld" && columns.numbers.numel() > 0) {
      numbers = register_module("numbers", std::make_shared<NumericEmbedding>(columns.numbers.numel(), parts));
      width += columns.numbers.numel() * (parts.numeric_embedding_size - 1);
    }
    for (const data::InputGroup& group : columns.embedded) {
      const std::string name = "embedding_" + std::to_string(embeddings.size());
      embeddings.push_back(register_parameter(name, torch::randn({group.count, parts.category_embedding})));
      width += parts.category_embedding;
    }
    if (parts.scaling_layer) scale = register_parameter("scale", torch::ones({width}));
    for (const int64_t size : options.hidden) {
      hidden.push_back(std::make_shared<TabularLayer>(width, size, options, /*hidden=*/true));
      hidden_list->push_back(hidden.back());
      width = size;
    }
    register_module("hidden", hidden_list);
    output = register_module("output", std::make_shared<TabularLayer>(width, outputs, options, /*hidden=*/false));
    if (data.task == data::Task::regression && parts.clip_predictions) set_range(data, outputs);
  }

  // The range of the training targets, in the units of the outputs: targets are standardised. A model that was made for
  // new samples takes the range from its weights.
  void set_range(const data::DataInfo& data, int64_t outputs) {
    const float most = std::numeric_limits<float>::max();
    range = register_buffer("range", torch::stack({torch::full({outputs}, -most), torch::full({outputs}, most)}));
    const auto known = static_cast<size_t>(outputs);
    if (data.target_low.size() != known || data.target_mean.size() != known) return;
    for (size_t i = 0; i < known; ++i) {
      const auto at = static_cast<int64_t>(i);
      range[0][at] = (data.target_low[i] - data.target_mean[i]) / data.target_std[i];
      range[1][at] = (data.target_high[i] - data.target_mean[i]) / data.target_std[i];
    }
  }

  // Returns what the first layer gets: [batch, width].
  torch::Tensor encode(const torch::Tensor& input) const {
    torch::Tensor x = columns.flatten(input);
    if (scaling) x = scaling->forward(x);
    std::vector<torch::Tensor> parts = {x};
    if (numbers) {
      const int64_t count = columns.numbers.numel();
      parts = {numbers->forward(x.narrow(1, 0, count)), x.narrow(1, count, x.size(1) - count)};
    }
    for (size_t i = 0; i < embeddings.size(); ++i) {
      const data::InputGroup& group = columns.embedded[i];
      parts.push_back(input.narrow(1, group.first, group.count).mm(embeddings[i]));  // picks a row
    }
    x = parts.size() == 1 ? x : torch::cat(parts, 1);
    return scale.defined() ? x * scale : x;
  }

  torch::Tensor forward(const torch::Tensor& given) {
    torch::Tensor x = encode(given.flatten(1));
    const double dropout = options.dropout * dropout_factor;
    for (const auto& layer : hidden) {
      x = layer->forward(x);
      if (dropout > 0) x = torch::dropout(x, dropout, is_training());
    }
    x = output->forward(x);
    return range.defined() && !is_training() ? torch::clamp(x, range[0], range[1]) : x;
  }

  void fit(const torch::Tensor& given) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor input = given.flatten(1);
    if (scaling) scaling->fit(columns.flatten(input));
    if (options.tabular.initialization != "data") return;
    torch::Tensor x = encode(input);
    for (const auto& layer : hidden) {
      layer->fit(x);
      x = layer->forward(x);
    }
    output->fit(x);
  }

  spec::ModelOptions options;
  TabularColumns columns;
  double dropout_factor = 1;
  std::shared_ptr<RobustScaling> scaling;
  std::shared_ptr<NumericEmbedding> numbers;
  std::vector<torch::Tensor> embeddings;
  torch::Tensor scale, range;
  torch::nn::ModuleList hidden_list;  // names the parameters of `hidden`
  std::vector<std::shared_ptr<TabularLayer>> hidden;
  std::shared_ptr<TabularLayer> output;
};

class TabularModel final : public ModuleModel {
 public:
  explicit TabularModel(const std::shared_ptr<TabularNet>& net)
      : ModuleModel(net, [raw = net.get()](const torch::Tensor& x) { return raw->forward(x); }), net_(net) {
    for (const NamedTensor& parameter : parameters()) factors_.push_back(factors_of(parameter.name));
  }
  UpdateFactors update_factors(size_t index) const override { return factors_.at(index); }
  bool fits_data() const override { return net_->scaling != nullptr || net_->options.tabular.initialization == "data"; }
  void fit(const torch::Tensor& input) override { net_->fit(input); }
  void set_dropout_factor(double factor) override { net_->dropout_factor = factor; }

 private:
  UpdateFactors factors_of(const std::string& name) const {
    const spec::TabularOptions& options = net_->options.tabular;
    if (name == "scale") return {options.scaling_lr_factor, 1};
    if (name.starts_with("numbers.")) return {options.numeric_lr_factor, 1};
    if (name.ends_with(".strength")) return {options.activation_lr_factor, 1};
    if (name.ends_with(".bias")) return {options.bias_lr_factor, options.bias_decay_factor};
    return {};
  }

  std::shared_ptr<TabularNet> net_;
  std::vector<UpdateFactors> factors_;
};

}  // namespace

std::unique_ptr<Model> make_tabular(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  require_numbers(data, "tabular");
  return std::make_unique<TabularModel>(std::make_shared<TabularNet>(options, data, outputs));
}

}  // namespace sinew::model
