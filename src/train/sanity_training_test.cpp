// Tests what `sinew check` says about frozen layers, outputs that do not fit the loss, rates that are somewhat too
// large, and classes that are never named.
#include <gtest/gtest.h>

#include "train/sanity_planted.h"

namespace sinew::train {
namespace {

SanityFinding judged(const std::string& name, const spec::Job& job, const data::Dataset& data,
                     std::function<std::unique_ptr<model::Model>()> make = nullptr) {
  const auto findings = check(job, data, std::move(make));
  const auto found = std::ranges::find(findings, name, &SanityFinding::check);
  return found == findings.end() ? SanityFinding{} : *found;
}

std::shared_ptr<SyntheticData> four_classes() {
  return synthetic(Task::classification, {10}, 4);
}

TEST(SanityTraining, LayersFrozenAtRandomValuesAreNamed) {
  spec::Job job = job_for("mlp");
  job.model.freeze = {"output.*"};
  EXPECT_EQ(judged("frozen", job, *four_classes()).cause, "frozen_head");
  job.model.freeze = {"hidden.*"};
  const SanityFinding body = judged("frozen", job, *four_classes());
  EXPECT_EQ(body.cause, "frozen") << finding_text(body);
  job.model.freeze.clear();
  EXPECT_EQ(judged("frozen", job, *four_classes()).verdict, SanityFinding::Verdict::pass);
}

TEST(SanityTraining, OutputsThatDoNotFitTheLossAreNamed) {
  using Function = std::function<torch::Tensor(const torch::Tensor&)>;
  const auto ending_with = [](const Function& last) {
    return custom([last](Custom& m, const torch::Tensor& x) { return last(m.layer(2, torch::relu(m.layer(0, x)))); });
  };
  const auto cause = [&](const Function& last) {
    return judged("outputs", job_for("mlp"), *four_classes(), ending_with(last)).cause;
  };
  EXPECT_EQ(cause([](const torch::Tensor& x) { return x.softmax(1); }), "outputs_are_probabilities");
  EXPECT_EQ(cause([](const torch::Tensor& x) { return x.sigmoid(); }), "outputs_are_bounded");
  EXPECT_EQ(cause([](const torch::Tensor& x) { return x.relu(); }), "outputs_are_bounded");
  EXPECT_EQ(cause([](const torch::Tensor& x) { return x; }), "");
  EXPECT_EQ(cause([](const torch::Tensor& x) { return x.log_softmax(1); }), "") << "the loss does not change these";
}

TEST(SanityTraining, ClassesInARegressionAreNamed) {
  const auto two_values = altered(numbers({10}), [](Split, data::Batch& b) {
    for (size_t r = 0; r < b.samples.size(); ++r) b.target.as<float>()[r] = b.target.as<float>()[r] > 0 ? 1.0F : -1.0F;
  });
  EXPECT_EQ(judged("outputs", job_for("mlp"), *two_values).cause, "targets_are_classes");
}

TEST(SanityTraining, ARateThatIsAHundredTimesTooLargeIsNamed) {
  spec::Job job = job_for("mlp");
  job.model.hidden = {64, 64};
  job.optimizer.lr = 0.3;
  const auto data = synthetic(Task::classification, {10}, 4, 1500, 200, 2.0);
  const auto findings = check(job, *data);
  EXPECT_TRUE(std::ranges::any_of(findings, [](const SanityFinding& finding) {
    return finding.cause == "learning_rate_too_large";
  })) << all_text(findings);
  job.optimizer.lr = 3e-3;
  const SanityFinding fine = judged("learning_rate", job, *data);
  EXPECT_EQ(fine.verdict, SanityFinding::Verdict::pass) << finding_text(fine);
}

// Two classes; the second has 5 % of the samples, and differs from the first by `distance` in one input.
std::shared_ptr<Altered> rare(float distance) {
  auto data = altered(synthetic(Task::classification, {10}, 2, 1500, 400), [distance](Split, data::Batch& b) {
    for (size_t r = 0; r < b.samples.size(); ++r) {
      RandomStream random = dice(b, r);
      label(b, r) = random.below(20) == 0 ? 1 : 0;
      for (int64_t i = 0; i < width(b); ++i) input(b, r)[i] = static_cast<float>(random.normal());
      input(b, r)[2] += distance * static_cast<float>(label(b, r));
    }
  });
  data->info_to_change().class_counts = {1425, 75};  // for loss.balanced
  return data;
}

TEST(SanityTraining, AClassThatIsNeverNamedFails) {
  const SanityFinding finding = judged("collapse", job_for("mlp"), *rare(0.7F));
  EXPECT_EQ(finding.cause, "class_collapse") << finding_text(finding);
  EXPECT_EQ(finding.verdict, SanityFinding::Verdict::fail);
  EXPECT_NE(finding.hint.find("loss.balanced"), std::string::npos);
  spec::Job balanced = job_for("mlp");
  balanced.loss.balanced = true;
  const SanityFinding weighted = judged("collapse", balanced, *rare(0.7F));
  EXPECT_EQ(weighted.verdict, SanityFinding::Verdict::pass) << finding_text(weighted);
  const SanityFinding clear = judged("collapse", job_for("mlp"), *rare(6.0F));
  EXPECT_EQ(clear.verdict, SanityFinding::Verdict::pass) << finding_text(clear);
}

}  // namespace
}  // namespace sinew::train
