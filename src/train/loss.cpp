#include "train/loss.h"

#include <cmath>

#include "base/check.h"
#include "base/error.h"

namespace sinew::train {
namespace {

constexpr int64_t kSum = at::Reduction::Sum, kNone = at::Reduction::None;

// Each token counts as a sample: [batch, time, classes] becomes [batch * time, classes].
torch::Tensor rows(const torch::Tensor& outputs) {
  return outputs.dim() == 3 ? outputs.flatten(0, 1) : outputs;
}

}  // namespace

std::string resolve_loss(const spec::Job& job, const data::DataInfo& data, std::string& reason) {
  const bool regression = data.task == data::Task::regression;
  if (job.loss.name == "auto") {
    if (job.model.name == "svm" && !regression) {
      reason = "a support vector machine is trained with hinge loss";
      return "hinge";
    }
    reason = regression ? "the target is a number" : "the target is a class";
    return regression ? "mse" : "cross_entropy";
  }
  if (job.loss.name == "program" || job.loss.name == "library") return job.loss.name;
  const bool for_numbers = job.loss.name == "mse" || job.loss.name == "l1";
  if (for_numbers && !regression) {
    throw Error("TRAIN_LOSS_MISMATCH",
                "loss '" + job.loss.name + "' needs a numeric target, but the task is classification",
                "use loss: cross_entropy, or data.task: regression");
  }
  if (!for_numbers && regression) {
    throw Error("TRAIN_LOSS_MISMATCH", "loss '" + job.loss.name + "' needs classes, but the task is regression",
                "use loss: mse or l1, or data.task: classification");
  }
  return job.loss.name;
}

int64_t outputs_for(const std::string& loss, const data::DataInfo& data) {
  if (loss == "program") return 0;
  if (data.task == data::Task::regression) return element_count(data.target_shape);
  return loss == "bce" && data.classes == 2 ? 1 : data.classes;
}

namespace {

// As scikit-learn's class_weight="balanced". A class without training samples has weight 0.
std::vector<double> balanced_weights(const data::DataInfo& data) {
  if (data.class_counts.empty()) {
    throw Error("TRAIN_LOSS_MISMATCH",
                "loss.balanced needs the number of samples of each class, which this data does not tell",
                "give the weights: loss.class_weights");
  }
  double samples = 0, present = 0;
  for (const int64_t count : data.class_counts) {
    samples += static_cast<double>(count);
    present += count > 0 ? 1 : 0;
  }
  std::vector<double> weights;
  for (const int64_t count : data.class_counts) {
    weights.push_back(count == 0 ? 0 : samples / (present * static_cast<double>(count)));
  }
  return weights;
}

}  // namespace

Loss::Loss(const spec::Job& job, const data::DataInfo& data)
    : name_(job.loss.name),
      label_smoothing_(job.loss.label_smoothing),
      focal_gamma_(job.loss.focal_gamma),
      is_mean_(job.loss.reduction == "mean"),
      over_targets_(job.loss.over == "targets"),
      ignore_index_(job.loss.ignore_index),
      classes_(data.classes) {
  if (name_ == "library") own_ = model::library_loss(job);
  if (name_ == "mse" || name_ == "l1") keep_target_moments(data);
  const std::vector<double> weights = job.loss.balanced ? balanced_weights(data) : job.loss.class_weights;
  if (weights.empty()) return;
  if (static_cast<int64_t>(weights.size()) != data.classes) {
    throw Error("TRAIN_LOSS_MISMATCH",
                "loss.class_weights has " + std::to_string(weights.size()) + " numbers for " +
                    std::to_string(data.classes) + " classes",
                "give one weight for each class, in the order of the classes");
  }
  class_weights_ = torch::tensor(weights, torch::kFloat32);
}

void Loss::keep_target_moments(const data::DataInfo& data) {
  if (data.target_std.size() == 1) {
    target_mean_ = data.target_mean[0];
    target_std_ = data.target_std[0];
    return;
  }
  target_means_ = torch::tensor(data.target_mean, torch::kFloat32).view(data.target_shape);
  target_stds_ = torch::tensor(data.target_std, torch::kFloat32).view(data.target_shape);
}

// Standardises the targets, so that the same learning rates suit prices and probabilities, and so that each number of a
// target counts alike.
torch::Tensor Loss::standardised(const torch::Tensor& targets) const {
  if (!target_stds_.defined()) return (targets - target_mean_) / target_std_;
  return (targets - target_means_.to(targets.device())) / target_stds_.to(targets.device());
}

torch::Tensor Loss::sum_of(const torch::Tensor& outputs, const torch::Tensor& targets, int64_t reduction) const {
  const torch::Tensor x = rows(outputs).to(torch::kFloat32);
  if (name_ == "cross_entropy") {
    const torch::Tensor weights = class_weights_.defined() ? class_weights_.to(x.device()) : torch::Tensor();
    if (focal_gamma_ > 0) return focal(x, targets.flatten(), weights, reduction);
    return at::cross_entropy_loss(x, targets.flatten(), weights, reduction, -100, label_smoothing_);
  }
  if (name_ == "hinge") return at::multi_margin_loss(x, targets.flatten(), 1, 1, {}, reduction);
  if (name_ == "bce") {
    // One number for each sample: [batch] means the same as [batch, 1].
    const torch::Tensor scores = x.dim() == 1 ? x.unsqueeze(1) : x;
    const torch::Tensor wanted = scores.size(1) == 1 ? targets.to(torch::kFloat32).unsqueeze(1)
                                                     : torch::one_hot(targets, classes_).to(torch::kFloat32);
    return at::binary_cross_entropy_with_logits(scores, wanted, {}, {}, reduction);
  }
  const torch::Tensor wanted = standardised(targets).to(torch::kFloat32).view_as(x);
  if (name_ == "mse") return at::mse_loss(x, wanted, reduction);
  SINEW_CHECK(name_ == "l1", name_);
  return at::l1_loss(x, wanted, reduction);
}

// Lin, Goyal, Girshick, He and Dollar, "Focal Loss for Dense Object Detection" (ICCV 2017), with softmax.
torch::Tensor Loss::focal(const torch::Tensor& scores, const torch::Tensor& classes, const torch::Tensor& weights,
                          int64_t reduction) const {
  const torch::Tensor plain = at::cross_entropy_loss(scores, classes, {}, kNone);
  // 1 - p, exact for p near 1. It is never 0, where the derivative of a power below 1 is infinite.
  const torch::Tensor doubt = torch::expm1(-plain).neg().clamp_min(1e-12);
  torch::Tensor each = doubt.pow(focal_gamma_) * plain;
  if (weights.defined()) each = each * weights.index_select(0, classes);
  return reduction == kSum ? each.sum() : each;
}

// Computes the weight of the batch from its targets. If the program returns a mean, the sum is the mean times the
// weight.
Loss::Value Loss::of_program(const torch::Tensor& output, const torch::Tensor& targets) const {
  if (output.numel() != 1)
    throw Error("MODEL_OUTPUT_MISMATCH",
                "loss: program needs one number, but the model returned " + std::to_string(output.numel()),
                "return the loss first, reduced to one number");
  const auto weight =
      over_targets_ ? targets.ne(ignore_index_).sum().item<int64_t>() : static_cast<int64_t>(targets.size(0));
  if (weight == 0) return {torch::zeros({}), 0};  // the mean that the program returned would be NaN
  const torch::Tensor value = output.reshape({}).to(torch::kFloat32);
  return {is_mean_ ? value * static_cast<double>(weight) : value, static_cast<double>(weight)};
}

Loss::Value Loss::of_library(const torch::Tensor& outputs, const torch::Tensor& targets) const {
  auto [sum, weight] = own_(outputs, targets);
  return {sum.to(torch::kFloat32), weight};
}

Loss::Value Loss::operator()(const torch::Tensor& outputs, const torch::Tensor& targets) const {
  if (name_ == "program") return of_program(outputs, targets);
  if (own_) return of_library(outputs, targets);
  double weight = static_cast<double>(name_ == "bce" ? outputs.numel() : targets.numel());
  if (class_weights_.defined() && name_ == "cross_entropy") {
    weight = class_weights_.to(torch::kFloat64).index_select(0, targets.flatten().cpu()).sum().item<double>();
  }
  return {sum_of(outputs, targets, kSum), weight};
}

torch::Tensor Loss::per_sample(const torch::Tensor& outputs, const torch::Tensor& targets) const {
  const torch::NoGradGuard no_grad;
  // A program returns only the loss of the whole batch, so every sample gets that loss.
  if (name_ == "program") return outputs.reshape({1}).expand({targets.size(0)});
  if (own_) {
    std::vector<torch::Tensor> each;
    for (int64_t i = 0; i < targets.size(0); ++i)
      each.push_back(of_library(outputs.slice(0, i, i + 1), targets.slice(0, i, i + 1)).sum);
    return torch::stack(each);
  }
  return sum_of(outputs, targets, kNone).reshape({targets.size(0), -1}).sum(1);
}

double Loss::expected_at_start() const {
  if (name_ == "cross_entropy") {
    const double classes = static_cast<double>(classes_);
    return std::pow(1 - 1 / classes, focal_gamma_) * std::log(classes);
  }
  if (name_ == "bce") return std::log(2.0);
  if (name_ == "hinge") return static_cast<double>(classes_ - 1) / static_cast<double>(classes_);
  return 1.0;  // mse, and approximately l1, of a standardised target
}

}  // namespace sinew::train
