// Runs a TorchScript module before training, to find problems that its graph does not show.
#include <algorithm>

#include "base/error.h"
#include "model/makers.h"
#include "model/script_model.h"

namespace sinew::model {
namespace {

constexpr int64_t kProbeSamples = 3;

std::vector<torch::Tensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const NamedTensor& item : tensors) copies.push_back(item.tensor.clone());
  return copies;
}

bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         torch::equal(torch::nan_to_num(a), torch::nan_to_num(b));
}

// Returns the attributes that are neither parameters nor buffers, but in which a forward pass could keep state.
std::vector<std::pair<std::string, c10::IValue>> other_attributes(const ScriptModel& model) {
  std::vector<std::pair<std::string, c10::IValue>> found;
  for (const auto& item : model.module().named_attributes()) {
    const c10::IValue& value = item.value;
    if (value.isInt() || value.isDouble() || value.isBool() || value.isString()) found.emplace_back(item.name, value);
    if (value.isTensor() && value.toTensor().defined()) found.emplace_back(item.name, value.toTensor().clone());
  }
  return found;
}

bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor() && b.isTensor()) return same(a.toTensor(), b.toTensor());
  return a.tagKind() == b.tagKind() && a == b;
}

class Probe {
 public:
  Probe(ScriptModel& model, const data::DataInfo& data)
      : model_(model), data_(data), buffers_(model.buffers()), before_(copies_of(buffers_)) {}

  void run(int64_t outputs) {
    const torch::NoGradGuard no_grad;
    model_.set_training(false);
    // A model that returns its loss may draw random numbers on purpose, as a variational autoencoder does. So both runs
    // of such a model use one key. scan_script has already checked its dropout.
    const torch::Tensor first = forward(1), second = forward(outputs == 0 ? 1 : 2);
    const ExpectedOutput expected(model_.path(), data_, outputs);
    expected.check(first, kProbeSamples);
    expected.check(second, kProbeSamples);
    if (!same(first, second))
      refuse("two evaluations of the same input give different results: evaluation does not turn dropout off",
             "torch.jit.trace fixes the mode it was traced in: use torch.jit.script, or trace model.eval() and train "
             "without dropout");
    if (!buffers_as_before())
      refuse("evaluation changes the buffer " + changed_buffer(), "update it only when self.training is true");

    model_.set_training(true);
    const auto attributes = other_attributes(model_);
    const torch::Tensor trained = forward(3);
    expected.check(trained, kProbeSamples);
    const auto left = copies_of(buffers_);
    restore();
    const torch::Tensor again = forward(3);
    bool equal = same(trained, again);
    for (size_t b = 0; b < left.size(); ++b) equal = equal && same(left[b], buffers_[b].tensor);
    restore();
    check_attributes(attributes);
    if (!equal)
      refuse("the same samples and random numbers give different results the second time",
             "keep the state of forward in buffers (register_buffer)");
  }

 private:
  torch::Tensor forward(uint64_t key) {
    const RandomScope scope(random_key({key}));
    try {
      return model_.forward(synthetic_input(data_, kProbeSamples), synthetic_target(data_, kProbeSamples)).clone();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
      std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
      if (text.size() > 1500) text = text.substr(text.size() - 1500);  // the reason is at the end
      throw Error(
          "MODEL_OPERATOR_FAILED",
          model_.path() + ": forward fails on " + std::to_string(kProbeSamples) + " samples like the data's:\n" + text,
          "set the source of each input in model.inputs; a traced module accepts only the shapes with which it was "
          "traced");
    }
  }

  bool buffers_as_before() const { return changed_buffer().empty(); }
  std::string changed_buffer() const {
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (!same(before_[b], buffers_[b].tensor)) return buffers_[b].name;
    }
    return "";
  }
  void restore() {
    for (size_t b = 0; b < buffers_.size(); ++b) buffers_[b].tensor.copy_(before_[b]);
  }
  void check_attributes(const std::vector<std::pair<std::string, c10::IValue>>& before) const {
    const auto after = other_attributes(model_);
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
      const bool buffer =
          std::ranges::any_of(buffers_, [&](const NamedTensor& b) { return b.name == before[i].first; });
      if (!buffer && !same(before[i].second, after[i].second))
        refuse("forward changes " + before[i].first + ", which is not a buffer",
               "make it a buffer (register_buffer): only buffers belong to the training state");
    }
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Error("MODEL_NOT_REPRODUCIBLE", model_.path() + ": " + what, hint);
  }

  ScriptModel& model_;
  const data::DataInfo& data_;
  std::vector<NamedTensor> buffers_;
  std::vector<torch::Tensor> before_;
};

}  // namespace

torch::Tensor synthetic_input(const data::DataInfo& data, int64_t count) {
  std::vector<int64_t> shape(data.input_shape.begin(), data.input_shape.end());
  shape.insert(shape.begin(), count);
  const RandomScope scope(random_key({0x5A}));
  if (data.input_dtype == DType::f32) return torch::randn(shape);
  return torch::randint(std::max<int64_t>(1, data.classes), shape, torch::kInt64);
}

torch::Tensor synthetic_target(const data::DataInfo& data, int64_t count) {
  std::vector<int64_t> shape(data.target_shape.begin(), data.target_shape.end());
  shape.insert(shape.begin(), count);
  if (data.task == data::Task::regression) return torch::zeros(shape);
  const RandomScope scope(random_key({0xA5}));
  return torch::randint(std::max<int64_t>(1, data.classes), shape, torch::kInt64);
}

void probe_script(ScriptModel& model, const data::DataInfo& data, int64_t outputs) {
  Probe(model, data).run(outputs);
}

}  // namespace sinew::model
