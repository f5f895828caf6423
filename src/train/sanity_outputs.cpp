// Checks that the range of the model's outputs fits the loss: the loss of classes takes any numbers (logits) and makes
// probabilities of them, so a model that does this, too, learns slowly and never becomes sure.
#include <algorithm>
#include <cmath>
#include <set>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kAsked = 64;
constexpr double kLarge = 1000;          // inputs times this drive every unbounded output far away
constexpr double kSaturated = 0.8;       // share of the outputs at their bounds, for large inputs
constexpr int64_t kFewestTargets = 200;  // with fewer numbers, two different ones are no surprise
constexpr double kFewestOfClass = 2.5;   // samples of a class on average; with fewer, the classes are numbers
constexpr int64_t kManyClasses = 50;

torch::Tensor outputs_of(const Subject& subject, model::Model& model, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  const model::RandomScope random(random_key({subject.job.trainer.seed, 63}));
  return model.forward(input).to(torch::kFloat32);
}

bool lie_between(const torch::Tensor& values, double low, double high) {
  return values.ge(low).all().item<bool>() && values.le(high).all().item<bool>();
}

// Whether the targets are classes in a regression, or numbers in a classification. Returns whether it judged.
bool judge_targets(const Subject& subject, SanityFinding& finding) {
  const data::DataInfo& info = subject.info();
  if (info.task == data::Task::regression && info.target_shape.empty()) {
    const auto rows = subject.draw(subject.train, 4 * kFewestTargets, 64);
    const std::vector<double> targets = target_values(subject.load(data::Split::train, rows));
    if (static_cast<int64_t>(rows.size()) < kFewestTargets || std::set(targets.begin(), targets.end()).size() > 2)
      return false;
    finding.what = format("the targets of %zu samples have only two values", rows.size());
    judge(finding, Verdict::warn, "targets_are_classes", "the target is a class, but the job predicts a number",
          "data.task=classification");
    return true;
  }
  const auto rows = static_cast<double>(subject.train.samples.size());
  const auto present = std::ranges::count_if(subject.train.class_counts, [](int64_t count) { return count > 0; });
  if (info.task != data::Task::classification || present < kManyClasses ||
      rows >= kFewestOfClass * static_cast<double>(present))
    return false;
  finding.what = format("%.0f samples have %td classes", rows, present);
  judge(finding, Verdict::warn, "targets_are_numbers", "the target is a number, but the job predicts a class",
        "data.task=regression");
  return true;
}

}  // namespace

void check_outputs(Subject& subject, SanityFinding& finding) {
  if (judge_targets(subject, finding)) return;
  const auto model = subject.make_model();
  model->set_training(false);
  const torch::Tensor x = tensor_of(subject.load(data::Split::train, subject.draw(subject.train, kAsked, 65)).input);
  const torch::Tensor out = outputs_of(subject, *model, x);
  finding.what = format("outputs from %.3g to %.3g, for ", out.min().item<double>(), out.max().item<double>()) +
                 subject.loss.name();
  if (subject.reads_tokens() || subject.reads_indices || subject.info().task != data::Task::classification) return;
  const torch::Tensor far = outputs_of(subject, *model, kLarge * x);
  const torch::Tensor both = torch::cat({out, far});
  const bool shares = out.dim() == 2 && out.size(1) > 1 && lie_between(both, 0, 1) &&
                      (both.sum(1) - 1).abs().max().item<double>() < 1e-3;
  // A hidden layer of tanh bounds the outputs, too, but only the last one drives them to the bounds.
  const bool positive = lie_between(both, 0, 1);
  const torch::Tensor to_bound = positive ? torch::minimum(far, 1 - far) : 1 - far.abs();
  const bool squashed = (positive || lie_between(both, -1, 1)) && far.abs().max().item<double>() > 0.5 &&
                        to_bound.lt(0.01).to(torch::kFloat32).mean().item<double>() > kSaturated;
  const bool cut = both.max().item<double>() > 0 && both.ge(0).all().item<bool>() &&
                   both.eq(0).to(torch::kFloat32).mean().item<double>() > 0.05;
  if (!shares && !squashed && !cut) return;
  finding.what +=
      shares ? "; each sample's add up to 1"
             : format("; of very large inputs from %.3g to %.3g", far.min().item<double>(), far.max().item<double>());
  judge(finding, Verdict::fail, shares ? "outputs_are_probabilities" : "outputs_are_bounded",
        shares ? "the model ends with softmax, and the loss applies it again"
               : std::string("the model ends with ") + (cut && !squashed ? "relu" : "sigmoid, tanh or the like") +
                     ", but the loss takes any numbers",
        "let the last layer be linear, without an activation after it");
}

}  // namespace sinew::train::sanity
