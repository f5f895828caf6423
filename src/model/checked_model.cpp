// Checks the output of a model that a user brought, at every forward pass. The model's file only promises a shape; the
// loss, the metrics and the predictions index the tensor by that shape.
#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "model/makers.h"

namespace sinew::model {
namespace {

class CheckedModel final : public Model {
 public:
  CheckedModel(std::unique_ptr<Model> inner, ExpectedOutput expected)
      : inner_(std::move(inner)), expected_(std::move(expected)) {}

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override {
    torch::Tensor made = inner_->forward(input, target);
    expected_.check(made, input.size(0));
    if (made.device() != input.device()) expected_.refuse("is on " + made.device().str(), input.device().str());
    return made;
  }
  void set_training(bool on) override { inner_->set_training(on); }
  std::vector<NamedTensor> parameters() override { return inner_->parameters(); }
  std::vector<NamedTensor> buffers() override { return inner_->buffers(); }
  void share(size_t index, const torch::Tensor& memory) override { inner_->share(index, memory); }
  std::string identity() const override { return inner_->identity(); }
  std::string batch_problem(int64_t samples) const override { return inner_->batch_problem(samples); }
  std::vector<std::string> remarks() const override { return inner_->remarks(); }
  bool wants_shadow(size_t index) override { return inner_->wants_shadow(index); }

 private:
  std::unique_ptr<Model> inner_;
  ExpectedOutput expected_;
};

}  // namespace

ExpectedOutput::ExpectedOutput(std::string file, const data::DataInfo& data, int64_t outputs)
    : file_(std::move(file)), outputs_(outputs) {
  if (data.task == data::Task::next_token) sample_.push_back(data.tokens_per_sample);
  sample_.push_back(outputs);
}

void ExpectedOutput::check(const torch::Tensor& made, int64_t count) const {
  if (!made.defined()) refuse("is empty", "a tensor");
  if (made.layout() != torch::kStrided || made.is_nested() || made.is_quantized())
    refuse("is not a dense tensor", "a dense tensor");
  if (!made.is_floating_point()) refuse("has the type " + std::string(toString(made.scalar_type())), "real numbers");
  const at::IntArrayRef sizes = made.sizes();
  if (outputs_ == 0) {
    if (made.numel() == 1) return;
    throw Error("MODEL_OUTPUT_MISMATCH",
                file_ + ": loss: program needs one number as the first output, but it is " + text(sizes),
                "return the loss first, reduced to one number");
  }
  // One number for each sample may have the shape [batch].
  if (outputs_ == 1 && sizes.size() == 1 && sizes[0] == count) return;
  if (sizes.size() == sample_.size() + 1 && sizes[0] == count && sizes.slice(1) == at::IntArrayRef(sample_)) return;
  std::vector<int64_t> wanted = {count};
  wanted.insert(wanted.end(), sample_.begin(), sample_.end());
  throw Error("MODEL_OUTPUT_MISMATCH",
              file_ + ": its first output for " + std::to_string(count) + " samples is " + text(sizes) +
                  ", but the loss takes " + text(wanted),
              "change the model's last layer or the data's classes");
}

void ExpectedOutput::refuse(const std::string& what, const std::string& wanted) const {
  throw Error("MODEL_OUTPUT_MISMATCH", file_ + ": its first output " + what + ", but the loss takes " + wanted,
              "return the prediction, or the loss, first, as a dense float32 tensor");
}

std::string ExpectedOutput::text(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

std::unique_ptr<Model> with_checked_output(std::unique_ptr<Model> model, ExpectedOutput expected) {
  return std::make_unique<CheckedModel>(std::move(model), std::move(expected));
}

}  // namespace sinew::model
