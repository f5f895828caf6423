// Tests that a training compares the sizes of all its shards with the model before its first step, and which gradients
// a model may have.
#include <gtest/gtest.h>

#include "base/expected_error.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

// A model that asks a function whether it takes a batch, and another one for its output.
class Asking final : public model::Model {
 public:
  using Problem = std::function<std::string(int64_t samples)>;
  using Output = std::function<torch::Tensor(const torch::Tensor& input, const torch::Tensor& weight)>;
  explicit Asking(Problem problem, Output output = nullptr)
      : problem_(std::move(problem)), output_(std::move(output)) {}
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor&) override { return output_(input, weight_); }
  void set_training(bool) override {}
  std::vector<model::NamedTensor> parameters() override { return {{"weight", weight_}}; }
  std::vector<model::NamedTensor> buffers() override { return {}; }
  void share(size_t, const torch::Tensor& memory) override { weight_.set_data(memory); }
  bool wants_shadow(size_t) override { return false; }
  std::string batch_problem(int64_t samples) const override { return problem_(samples); }

 private:
  Problem problem_;
  Output output_;
  torch::Tensor weight_ = torch::linspace(-1, 1, 40).view({10, 4}).set_requires_grad(true);
};

// Returns the sizes that a training checks, or the error of the first size that is not `good`.
std::string checked(const spec::Job& job, const SyntheticData& data, std::set<int64_t>& sizes, int64_t bad = -1) {
  TestEngine test(job, data, [&] {
    return std::make_unique<Asking>([&sizes, bad](int64_t samples) {
      sizes.insert(samples);
      return std::string(samples == bad ? "it is wrong" : "");
    });
  });
  return error_of([&] { test.engine.check_sizes(); });
}

TEST(EngineSizes, AllShardsAreCheckedBeforeTheFirstStep) {
  spec::Job job = test_job("mlp", 1, 4);
  job.trainer.batch_size = 40;
  const SyntheticData data(data::Task::classification, {10}, 4, 107, 25);  // 40, 40 and 27 samples; parts of 10
  std::set<int64_t> sizes;
  EXPECT_EQ(checked(job, data, sizes), "");
  EXPECT_EQ(sizes, (std::set<int64_t>{9, 10, 5}));
  EXPECT_ERROR(checked(job, data, sizes, 9), "MODEL_INPUT_MISMATCH", "shards of 9 samples do not fit the model: it is");
  EXPECT_ERROR(checked(job, data, sizes, 5), "MODEL_INPUT_MISMATCH", "parts of the val data of 5 samples");
  job.trainer.drop_last = true;
  EXPECT_EQ(checked(job, data, sizes, 9), "");
}

TEST(EngineSizes, AGrowingBatchHasMoreSizes) {
  spec::Job job = test_job("mlp", 1, 1);
  job.trainer.batch_size = 40;
  job.trainer.batch_size_ramp = {10};
  job.trainer.batch_size_ramp_interval = {2, spec::Duration::Unit::steps};
  const SyntheticData data(data::Task::classification, {10}, 4, 107, 0);
  std::set<int64_t> sizes;
  EXPECT_EQ(checked(job, data, sizes), "");
  EXPECT_EQ(sizes, (std::set<int64_t>{10, 40, 7, 27})) << "20 + 40 + 40 + 7 samples, then 40 + 40 + 27";
}

TEST(EngineGradients, ASparseGradientCountsAsADenseOne) {
  spec::Job job = test_job("mlp", 1, 2);
  job.trainer.batch_size = 8;
  const SyntheticData data(data::Task::classification, {10}, 4, 8, 0);
  const auto weight_after = [&](bool sparse) {
    TestEngine test(job, data, [&] {
      return std::make_unique<Asking>([](int64_t) { return ""; },
                                      [sparse](const torch::Tensor& x, const torch::Tensor& weight) {
                                        const torch::Tensor ids = (x > 0).sum(1, /*keepdim=*/true);
                                        return torch::embedding(weight, ids.clamp_max(9), -1, false, sparse).squeeze(1);
                                      });
    });
    test.engine.step(0.1, false);
    return test.engine.state().parameters[0].tensor.clone();
  };
  EXPECT_TRUE(torch::equal(weight_after(true), weight_after(false)));
}

TEST(EngineGradients, AnOutputWithoutAGradientIsAnError) {
  const spec::Job job = test_job("mlp", 1, 2);
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  TestEngine test(job, data, [&] {
    return std::make_unique<Asking>(
        [](int64_t) { return ""; },
        [](const torch::Tensor& x, const torch::Tensor& weight) { return x.mm(weight).detach(); });
  });
  EXPECT_ERROR(error_of([&] { test.engine.probe(); }), "MODEL_OUTPUT_MISMATCH",
               "does not depend on a trained parameter");
  EXPECT_ERROR(error_of([&] { test.engine.step(0.1, false); }), "TRAIN_SHARD_FAILED", "has no gradient");
}

}  // namespace
}  // namespace sinew::train
