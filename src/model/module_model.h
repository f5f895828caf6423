// Inside model/: a torch::nn::Module behind the Model interface.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace sinew::model {

// For Model::wants_shadow, by place in `parameters`, which `root` has by these names.
inline std::vector<bool> shadows_of(const torch::nn::Module& root, const std::vector<NamedTensor>& parameters) {
  std::vector<bool> shadows(parameters.size(), false);
  for (const auto& item : root.named_modules("", /*include_self=*/false)) {
    const auto* module = item.value().get();
    const bool casts = dynamic_cast<const torch::nn::LinearImpl*>(module) != nullptr ||
                       dynamic_cast<const torch::nn::Conv2dImpl*>(module) != nullptr ||
                       dynamic_cast<const torch::nn::LSTMImpl*>(module) != nullptr;
    if (!casts) continue;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name.starts_with(item.key() + ".")) shadows[i] = true;
    }
  }
  return shadows;
}

// Module: a torch::nn::Module with `torch::Tensor forward(const torch::Tensor&)`.
template <typename Module>
class ModuleModel final : public Model {
 public:
  explicit ModuleModel(std::shared_ptr<Module> module) : module_(std::move(module)) {
    for (const auto& item : module_->named_parameters()) parameters_.push_back({item.key(), item.value()});
    for (const auto& item : module_->named_buffers()) buffers_.push_back({item.key(), item.value()});
    shadows_ = shadows_of(*module_, parameters_);
  }

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor&) override { return module_->forward(input); }
  void set_training(bool on) override { module_->train(on); }
  std::vector<NamedTensor> parameters() override { return parameters_; }
  std::vector<NamedTensor> buffers() override { return buffers_; }

  void share(size_t index, const torch::Tensor& memory) override {
    torch::Tensor& parameter = parameters_.at(index).tensor;
    parameter.mutable_grad() = torch::Tensor();
    parameter.set_data(memory);
  }
  bool wants_shadow(size_t index) override { return shadows_.at(index); }

 private:
  std::shared_ptr<Module> module_;
  std::vector<NamedTensor> parameters_, buffers_;
  std::vector<bool> shadows_;
};

template <typename Module>
std::unique_ptr<Model> as_model(std::shared_ptr<Module> module) {
  return std::make_unique<ModuleModel<Module>>(std::move(module));
}

}  // namespace sinew::model
