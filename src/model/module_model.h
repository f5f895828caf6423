// Private to model/: implements the Model interface for a torch::nn::Module.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace sinew::model {

// If the module has a parameter under several names, the parameter counts once, under its first name.
class ModuleModel : public Model {
 public:
  using Forward = std::function<torch::Tensor(const torch::Tensor&)>;
  // `identity`: see Model::identity.
  ModuleModel(std::shared_ptr<torch::nn::Module> root, Forward forward, std::string identity = "");

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor&) override { return forward_(input); }
  void set_training(bool on) override { root_->train(on); }
  std::vector<NamedTensor> parameters() override { return parameters_; }
  std::vector<NamedTensor> buffers() override { return buffers_; }
  void share(size_t index, const torch::Tensor& memory) override;
  bool wants_shadow(size_t index) override { return shadows_.at(index); }
  std::string identity() const override { return identity_; }

 private:
  std::shared_ptr<torch::nn::Module> root_;
  Forward forward_;
  std::string identity_;
  std::vector<NamedTensor> parameters_, buffers_;
  std::vector<bool> shadows_;  // whether parameters_[i] has a shadow
};

// Module: a torch::nn::Module with `torch::Tensor forward(const torch::Tensor&)`.
template <typename Module>
std::unique_ptr<Model> as_model(std::shared_ptr<Module> module) {
  Module* raw = module.get();  // the model's root_ keeps it alive
  return std::make_unique<ModuleModel>(std::move(module), [raw](const torch::Tensor& x) { return raw->forward(x); });
}

}  // namespace sinew::model
