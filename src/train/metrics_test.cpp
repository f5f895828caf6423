// Tests of metrics for outputs that are NaN or infinite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expected_error.h"
#include "train/loss.h"

namespace sinew::train {
namespace {

report::Metrics metrics_of(const torch::Tensor& outputs, const std::vector<int64_t>& truth, int64_t classes) {
  data::DataInfo info;
  info.classes = classes;
  const MetricCounter counter("cross_entropy", info, true);
  Contribution leaf;
  counter.count(outputs, torch::tensor(truth), leaf);
  return counter.finish(leaf);
}

TEST(Metrics, ThereIsNoAucIfAScoreIsNan) {
  torch::Tensor outputs = torch::arange(80, torch::kFloat32).sin().reshape({40, 2});
  std::vector<int64_t> truth;
  for (int64_t i = 0; i < 40; ++i) truth.push_back(i % 2);
  EXPECT_TRUE(metrics_of(outputs, truth, 2).contains("auc"));
  outputs[7][1] = NAN;
  EXPECT_FALSE(metrics_of(outputs, truth, 2).contains("auc"));
}

// An evaluation of no samples has no metrics. A loss of 0 would be the best one there is.
TEST(Metrics, ThereAreNoneOfNoSamples) {
  EXPECT_TRUE(metrics_of(torch::zeros({0, 3}), {}, 3).empty());
  data::DataInfo info;
  info.task = data::Task::regression;
  EXPECT_TRUE(MetricCounter("mse", info, true).finish({}).empty());
}

TEST(Metrics, NonFiniteOutputsCountAsWrong) {
  const std::vector<int64_t> truth = {0, 1, 2, 3, 4, 5, 6, 0};
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    const auto metrics = metrics_of(torch::full({8, 7}, value), truth, 7);
    EXPECT_EQ(metrics.at("accuracy"), 0) << value;
    EXPECT_EQ(metrics.at("top5"), 0) << value;
    EXPECT_EQ(metrics.at("f1"), 0) << value;
  }
  torch::Tensor outputs = torch::zeros({8, 7});
  outputs.slice(1, 1, 7).fill_(-INFINITY);  // excluded classes do no harm
  EXPECT_EQ(metrics_of(outputs, truth, 7).at("accuracy"), 0.25);
}

// The index of the largest output of a row is an index into the counters. A program once gave 40 million columns for 3
// classes, and the code wrote past the end of the counters.
TEST(Metrics, OutputsOfAnotherShapeAreRefused) {
  const auto refusal = [](const torch::Tensor& outputs, const std::vector<int64_t>& truth) {
    return error_of([&] { metrics_of(outputs, truth, 3); });
  };
  EXPECT_EQ(refusal(torch::ones({2, 3}), {0, 2}), "");
  EXPECT_ERROR(refusal(torch::zeros({1}).expand({2, 40'000'000}), {0, 2}), "MODEL_OUTPUT_MISMATCH", "[2, 40000000]");
  EXPECT_ERROR(refusal(torch::ones({2, 2}), {0, 2}), "MODEL_OUTPUT_MISMATCH", "[2, 3]");
  EXPECT_ERROR(refusal(torch::ones({3, 3}), {0, 2}), "MODEL_OUTPUT_MISMATCH", "[3, 3]");
  EXPECT_ERROR(refusal(torch::ones({2}), {0, 2}), "MODEL_OUTPUT_MISMATCH", "[2]");
  EXPECT_ERROR(refusal(torch::ones({1, 1, 2, 3}), {0, 2}), "MODEL_OUTPUT_MISMATCH", "");
}

TEST(Metrics, LabelsOutsideOfTheClassesAreRefused) {
  for (const int64_t label : {int64_t{-1}, int64_t{-100}, int64_t{3}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_ERROR(error_of([&] {
                   metrics_of(torch::ones({2, 3}), {0, label}, 3);
                 }),
                 "TRAIN_LABEL_INVALID", std::to_string(label));
  }
}

TEST(Metrics, ARegressionNeedsANumberForEachTarget) {
  data::DataInfo info;
  info.task = data::Task::regression;
  const MetricCounter counter("mse", info, true);
  Contribution leaf;
  EXPECT_ERROR(error_of([&] { counter.count(torch::ones({5}), torch::ones({2}), leaf); }), "MODEL_OUTPUT_MISMATCH",
               "5 numbers for 2 targets");
}

// Two targets of very different sizes: each is standardised by itself in the loss, and measured in its own units.
TEST(Metrics, EachNumberOfATargetHasItsOwnMean) {
  data::DataInfo info;
  info.task = data::Task::regression;
  info.target_shape = {2};
  info.target_mean = {1000, -2};
  info.target_std = {500, 0.5};
  spec::Job job;
  job.loss.name = "mse";
  const torch::Tensor targets = torch::tensor({1500.0F, -2.5F, 1000.0F, -1.0F}).view({2, 2});
  const torch::Tensor outputs = torch::tensor({1.0F, -1.0F, 2.0F, 0.0F}).view({2, 2});  // in standard deviations
  const Loss::Value loss = Loss(job, info)(outputs, targets);
  EXPECT_FLOAT_EQ(loss.sum.item<float>(), 2 * 2 + 2 * 2) << "the first row is right, the second 2 deviations off twice";
  const MetricCounter counter("mse", info, true);
  Contribution leaf;
  counter.count(outputs, targets, leaf);
  const report::Metrics metrics = counter.finish(leaf);
  EXPECT_DOUBLE_EQ(metrics.at("mae"), (1000 + 1) / 4.0);
  EXPECT_DOUBLE_EQ(metrics.at("rmse"), std::sqrt((1e6 + 1) / 4.0));
}

// 6 samples of class 0, 2 of class 1, none of class 2: scikit-learn's compute_class_weight gives 8/12 and 8/4.
TEST(Loss, BalancedWeightsMakeTheClassesCountAlike) {
  data::DataInfo info;
  info.classes = 3;
  info.class_counts = {6, 2, 0};
  spec::Job job;
  job.loss.name = "cross_entropy";
  job.loss.balanced = true;
  const torch::Tensor outputs = torch::zeros({2, 3}), targets = torch::tensor({0, 1}, torch::kInt64);
  const Loss::Value loss = Loss(job, info)(outputs, targets);
  EXPECT_NEAR(loss.weight, 8.0 / 12 + 8.0 / 4, 1e-6);
  EXPECT_NEAR(loss.sum.item<double>(), loss.weight * std::log(3.0), 1e-5);
  info.class_counts.clear();
  EXPECT_ERROR(error_of([&] { Loss(job, info); }), "TRAIN_LOSS_MISMATCH", "loss.class_weights");
}

TEST(Loss, FocalFollowsItsDefinition) {
  data::DataInfo info;
  info.classes = 3;
  for (const double gamma : {0.5, 1.0, 2.0}) {
    spec::Job job;
    job.loss.name = "cross_entropy";
    job.loss.focal_gamma = gamma;
    job.loss.class_weights = {1, 2, 3};
    const torch::Tensor scores =
        torch::tensor({1.0, 2.0, -1.0, 0.5, 0.0, 3.0, 40.0, -40.0, 0.0}).view({3, 3}).to(torch::kFloat32);
    const torch::Tensor targets = torch::tensor({1, 0, 0}, torch::kInt64);
    torch::Tensor outputs = scores.clone().requires_grad_();
    const Loss::Value loss = Loss(job, info)(outputs, targets);
    loss.sum.backward();
    torch::Tensor exact = scores.to(torch::kFloat64).requires_grad_();
    const torch::Tensor p = torch::softmax(exact, 1).gather(1, targets.unsqueeze(1)).flatten();
    const torch::Tensor weights = torch::tensor({2.0, 1.0, 1.0}, torch::kFloat64);
    const torch::Tensor expected = (weights * (1 - p).pow(gamma) * -p.log()).slice(0, 0, 2).sum();
    expected.backward();
    EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(), 1e-5);
    EXPECT_EQ(loss.weight, 4);
    EXPECT_TRUE(
        torch::allclose(outputs.grad().slice(0, 0, 2), exact.grad().slice(0, 0, 2).to(torch::kFloat32), 1e-4, 1e-5));
    EXPECT_TRUE(torch::isfinite(outputs.grad()).all().item<bool>()) << "the third sample is certain: p is 1";
    EXPECT_NEAR(Loss(job, info).expected_at_start(), std::pow(2.0 / 3, gamma) * std::log(3.0), 1e-9);
  }
}

// The loss and the metrics accept [batch]: one number for each sample.
TEST(Metrics, OneLogitMayLackItsDimension) {
  data::DataInfo info;
  info.classes = 2;
  spec::Job job;
  job.loss.name = "bce";
  const torch::Tensor outputs = torch::tensor({1.5F, -2.0F, 0.5F}), targets = torch::tensor({1, 0, 0}, torch::kInt64);
  const Loss loss(job, info);
  EXPECT_EQ(loss(outputs, targets).sum.item<float>(), loss(outputs.unsqueeze(1), targets).sum.item<float>());
  const MetricCounter counter("bce", info, true);
  Contribution leaf;
  counter.count(outputs, targets, leaf);
  EXPECT_EQ(leaf.counts[1], 2);
}

}  // namespace
}  // namespace sinew::train
