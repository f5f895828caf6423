#include "model/module_model.h"

#include <algorithm>

namespace sinew::model {
namespace {

// Returns what Model::wants_shadow answers: true for the parameters of layers that compute in low precision.
std::vector<bool> shadows_of(const torch::nn::Module& root, const std::vector<NamedTensor>& parameters) {
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

}  // namespace

ModuleModel::ModuleModel(std::shared_ptr<torch::nn::Module> root, Forward forward, std::string identity)
    : root_(std::move(root)), forward_(std::move(forward)), identity_(std::move(identity)) {
  for (const auto& item : root_->named_parameters()) {
    const auto same = [&](const NamedTensor& known) { return known.tensor.is_same(item.value()); };
    if (std::ranges::none_of(parameters_, same)) parameters_.push_back({item.key(), item.value()});
  }
  for (const auto& item : root_->named_buffers()) buffers_.push_back({item.key(), item.value()});
  shadows_ = shadows_of(*root_, parameters_);
}

void ModuleModel::share(size_t index, const torch::Tensor& memory) {
  torch::Tensor& parameter = parameters_.at(index).tensor;
  parameter.mutable_grad() = torch::Tensor();
  parameter.set_data(memory);
}

}  // namespace sinew::model
