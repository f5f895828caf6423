// Tests of metrics for outputs that are NaN or infinite.
#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace sinew::train
