// Tests of `sinew check` on models that return only their loss.
#include <gtest/gtest.h>

#include "train/sanity.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

using OwnLoss = std::function<torch::Tensor(const torch::Tensor& logits, const torch::Tensor& target)>;

// One linear layer that computes its own loss.
struct Whole final : model::Model {
  explicit Whole(OwnLoss loss) : loss_(std::move(loss)) {
    const model::RandomScope scope(random_key({3}));
    weights_ = {{"w", torch::randn({3, 6}).mul_(0.1).set_requires_grad(true)},
                {"b", torch::zeros({3}).set_requires_grad(true)}};
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& target) override {
    return loss_(torch::linear(x, weights_[0].tensor, weights_[1].tensor), target);
  }
  void set_training(bool) override {}
  std::vector<model::NamedTensor> parameters() override { return weights_; }
  std::vector<model::NamedTensor> buffers() override { return {}; }
  void share(size_t index, const torch::Tensor& memory) override { weights_.at(index).tensor.set_data(memory); }
  bool wants_shadow(size_t) override { return false; }

  std::vector<model::NamedTensor> weights_;
  OwnLoss loss_;
};

std::map<std::string, SanityFinding> findings_of(const OwnLoss& loss, const std::string& reduction = "mean") {
  const SyntheticData data(data::Task::classification, {6}, 3, 400, 80);
  spec::Job job = test_job("program", 1, 4);
  job.model.file = "whole.pt2";
  job.loss.name = "program";
  job.loss.reduction = reduction;
  job.trainer.batch_size = 32;
  std::map<std::string, SanityFinding> found;
  const auto make = [loss] { return std::make_unique<Whole>(loss); };
  for (const SanityFinding& finding : check_sanity({job, &data, make, 60, nullptr}, system_clock()))
    found[finding.check] = finding;
  return found;
}

torch::Tensor entropy(const torch::Tensor& logits, const torch::Tensor& target) {
  return torch::nn::functional::cross_entropy(logits, target);
}

TEST(SanityOfOwnLoss, ACleanModelHasNoFindings) {
  const auto found = findings_of(entropy);
  for (const auto& [name, finding] : found)
    EXPECT_TRUE(finding.verdict == SanityFinding::Verdict::pass || finding.verdict == SanityFinding::Verdict::skip)
        << finding_text(finding);
  for (const char* must :
       {"data", "function", "batch_leak", "eval_mode", "gradients", "one_batch", "first_steps", "repeatable"})
    EXPECT_EQ(found.at(must).verdict, SanityFinding::Verdict::pass) << finding_text(found.at(must));
}

TEST(SanityOfOwnLoss, ANegativeLossMayFallFurther) {
  for (const auto& [name, finding] : findings_of([](const auto&x, const auto&y) { return entropy(x, y) - 50; }))
    EXPECT_NE(finding.verdict, SanityFinding::Verdict::fail) << finding_text(finding);
}

TEST(SanityOfOwnLoss, AMeanThatIsTakenForASumIsNamed) {
  EXPECT_EQ(findings_of(entropy, "sum").at("batch_leak").cause, "reduction");
}

TEST(SanityOfOwnLoss, ALossThatIgnoresItsInputIsNamed) {
  const auto found = findings_of([](const torch::Tensor& x, const torch::Tensor&) { return (x * 0).sum() + 1; });
  EXPECT_EQ(found.at("function").cause, "output_constant");
  EXPECT_EQ(found.at("one_batch").cause, "cannot_learn");
}

TEST(SanityOfOwnLoss, RandomNumbersInEvaluationAreReportedButDoNotFail) {
  const auto found = findings_of(
      [](const torch::Tensor& x, const torch::Tensor& y) { return entropy(x + 0.1 * torch::randn_like(x), y); });
  EXPECT_NE(found.at("eval_mode").what.find("draws random numbers in evaluation"), std::string::npos);
  EXPECT_EQ(found.at("batch_leak").verdict, SanityFinding::Verdict::skip);
}

}  // namespace
}  // namespace sinew::train
