// Tests of steps that must not be committed, and of samples that cannot be decoded.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "train/engine.h"
#include "train/state.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

// A model whose outputs are altered by the function `bend`.
class Bent final : public model::Model {
 public:
  using Bend = std::function<torch::Tensor(const torch::Tensor& outputs)>;
  Bent(std::unique_ptr<model::Model> inner, Bend bend) : inner_(std::move(inner)), bend_(std::move(bend)) {}
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override {
    return bend_(inner_->forward(input, target));
  }
  void set_training(bool on) override { inner_->set_training(on); }
  std::vector<model::NamedTensor> parameters() override { return inner_->parameters(); }
  std::vector<model::NamedTensor> buffers() override { return inner_->buffers(); }
  void share(size_t index, const torch::Tensor& memory) override { inner_->share(index, memory); }
  bool wants_shadow(size_t index) override { return inner_->wants_shadow(index); }

 private:
  std::unique_ptr<model::Model> inner_;
  Bend bend_;
};

// An engine over a test's data and an altered model.
struct BentEngine : TestEngine {
  BentEngine(const spec::Job& job, const data::Dataset& data, const Bent::Bend& bend)
      : TestEngine(job, data, [job, &data, bend] {
          return std::make_unique<Bent>(model::make_model(job.model, data.info(), 4, job.trainer.seed), bend);
        }) {}
};

TEST(EngineTrouble, DoesNotCommitANonFiniteGradient) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  for (const int64_t lanes : {1, 2}) {
    // Adds sqrt(0): the loss is unchanged, but the gradient of sqrt at zero is infinite, and infinity times zero is
    // NaN.
    BentEngine test(test_job("mlp", lanes), data, [](const torch::Tensor& x) { return x + (x * 0).abs().sqrt(); });
    const std::string text = refused_step(test.engine);
    EXPECT_NE(text.find("a gradient is not"), std::string::npos) << text;
  }
}

TEST(EngineTrouble, DoesNotCommitAGradientWhoseSquareIsInfinite) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  const auto bend = [](const torch::Tensor& x) { return x * 1e20; };
  spec::Job job = test_job("mlp");
  BentEngine test(job, data, bend);
  const std::string text = refused_step(test.engine);
  EXPECT_NE(text.find("its norm is"), std::string::npos) << text;
  job.trainer.grad_clip_norm = 1;
  BentEngine clipped(job, data, bend);
  EXPECT_GT(clipped.engine.step(0.01, false).grad_norm, 1e18);  // clipping makes it usable
}

// A model with two buffers: a mask that is infinite from the beginning, and one that becomes infinite in training.
class Overflowing final : public model::Model {
 public:
  explicit Overflowing(std::unique_ptr<model::Model> inner) : inner_(std::move(inner)) {}
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override {
    const torch::NoGradGuard no_grad;
    growing_.mul_(1e30);
    mask_.slice(0, 0, 1).add_(1);
    const torch::AutoGradMode grad(true);
    return inner_->forward(input, target);
  }
  void set_training(bool on) override { inner_->set_training(on); }
  std::vector<model::NamedTensor> parameters() override { return inner_->parameters(); }
  std::vector<model::NamedTensor> buffers() override { return {{"mask", mask_}, {"growing", growing_}}; }
  void share(size_t index, const torch::Tensor& memory) override { inner_->share(index, memory); }
  bool wants_shadow(size_t index) override { return inner_->wants_shadow(index); }

 private:
  std::unique_ptr<model::Model> inner_;
  torch::Tensor mask_ = torch::tensor({0.0F, -INFINITY}), growing_ = torch::ones({1});
};

TEST(EngineTrouble, DoesNotCommitABufferThatIsNoLongerFinite) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  const spec::Job job = test_job("mlp");
  TestEngine test(job, data,
                  [&] { return std::make_unique<Overflowing>(model::make_model(job.model, data.info(), 4, 7)); });
  test.engine.step(0.01, false);  // 1e30, and the mask is still infinite
  const std::string text = refused_step(test.engine);
  EXPECT_NE(text.find("the buffer growing"), std::string::npos) << text;
}

TEST(EngineTrouble, TheExplanationUsesTheSameRandomNumbers) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  std::vector<torch::Tensor> masks;
  BentEngine test(test_job("mlp"), data, [&](const torch::Tensor& x) {
    masks.push_back(torch::empty_like(x).bernoulli_(0.9));
    return x.abs() / masks.back();
  });
  const std::string text = refused_step(test.engine);
  ASSERT_EQ(masks.size(), 16U);  // eight shards in the step, and eight again when the cause is searched
  int64_t bad = 0;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(torch::equal(masks[i], masks[i + 8])) << i;
    bad += masks[i].eq(0).any(1).sum().item<int64_t>();
  }
  EXPECT_NE(text.find(std::to_string(bad) + " of 40 samples"), std::string::npos) << text;
}

TEST(EngineTrouble, TheExplanationDoesNotDependOnTheLanes) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  std::vector<std::string> texts;
  for (const int64_t lanes : {1, 2, 4}) {
    std::atomic<int> calls = 0;
    BentEngine test(test_job("mlp", lanes), data, [&](const torch::Tensor& x) {
      ++calls;
      torch::Tensor old = torch::empty_like(x);  // its memory is what the next tensor of this size probably gets
      std::fill_n(old.mutable_data_ptr<float>(), old.numel(), NAN);
      old.reset();
      return x.abs() / torch::empty_like(x).bernoulli_(0.9);
    });
    texts.push_back(refused_step(test.engine));
    EXPECT_NE(texts.back().find("first not finite at aten::div"), std::string::npos) << texts.back();
    EXPECT_EQ(texts.back(), texts.front()) << lanes;
    EXPECT_EQ(calls.load(), 16) << "eight shards in the step, and eight again";
  }
}

// The loop repeats a step that diverges. Only the repetition searches for the cause, because that costs another step.
TEST(EngineTrouble, WithoutAnExplanationNothingIsComputedAgain) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  int calls = 0;
  BentEngine test(test_job("mlp"), data, [&](const torch::Tensor& x) {
    ++calls;
    return x / 0;
  });
  EXPECT_THROW(test.engine.step({0.01, {}}, false, false), Diverged);
  EXPECT_EQ(calls, 8);
}

TEST(EngineTrouble, EachCallInEachShardAndStepDrawsOtherNumbers) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  std::set<std::string> drawn;
  for (const uint64_t seed : {5, 6}) {
    spec::Job job = test_job("mlp");
    job.trainer.seed = seed;
    BentEngine test(job, data, [&](const torch::Tensor& x) {
      for (int call = 0; call < 2; ++call) {
        const torch::Tensor draw = torch::randint(1 << 30, {4});
        drawn.emplace(static_cast<const char*>(draw.const_data_ptr()), draw.nbytes());
      }
      return x;
    });
    for (int step = 0; step < 2; ++step) test.engine.step(0.01, false);
  }
  EXPECT_EQ(drawn.size(), 2U * 2 * 8 * 2);  // seeds, steps, shards, calls
}

TEST(EngineTrouble, ReportsDivergenceEvenIfTheExplanationFails) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  int calls = 0;
  BentEngine test(test_job("mlp"), data, [&](const torch::Tensor& x) {
    TORCH_CHECK(++calls <= 8, "not again");
    return x / 0;
  });
  const std::string text = refused_step(test.engine);
  EXPECT_NE(text.find("diverged at step 0"), std::string::npos) << text;
  EXPECT_FALSE(at::hasThreadLocalCallbacks());
}

// A data set in which every fifth sample cannot be decoded. It records whether augmentation was ever requested.
class Holes final : public AlteredData {
 public:
  using AlteredData::AlteredData;
  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    std::vector<int64_t> whole;
    std::vector<data::Skipped> skipped;
    for (const int64_t sample : samples) {
      if (sample % 5 != 0) {
        whole.push_back(sample);
      } else {
        skipped.push_back({sample, describe(split, sample) + ": torn"});
      }
    }
    augmented = augmented || context.augment;
    data::Batch batch = data_.load(split, whole, context);
    batch.skipped = std::move(skipped);
    return batch;
  }
  mutable std::atomic<bool> augmented{false};
};

TEST(EngineTrouble, CountsAndNamesSkippedSamples) {
  const SyntheticData whole(data::Task::classification, {10}, 4, 40, 31);
  const Holes data(whole);
  for (const int64_t lanes : {1, 2}) {
    TestEngine test(test_job("mlp", lanes), data);
    const SkippedSamples in_step = test.engine.step(0.01, false).skipped;
    EXPECT_EQ(in_step.count, 8);
    EXPECT_EQ(std::set<std::string>(in_step.names.begin(), in_step.names.end()).size(), SkippedSamples::kNamed);
    EXPECT_TRUE(in_step.names.at(0).ends_with(": torn")) << in_step.names.at(0);
    const EvaluationResult result = test.engine.evaluate(data::Split::val);
    EXPECT_EQ(result.samples, 24);
    EXPECT_EQ(result.skipped.count, 7);
    EXPECT_TRUE(result.skipped.names.at(0).starts_with("val#")) << result.skipped.names.at(0);
    // The samples that the evaluation skipped do not count here.
    EXPECT_EQ(test.engine.step(0.01, false).skipped.count, 8);
  }
}

TEST(EngineTrouble, DoesNotAugmentSamplesInAnEvaluation) {
  const SyntheticData whole(data::Task::classification, {10}, 4, 40, 31);
  const Holes data(whole);
  TestEngine test(test_job("mlp"), data);
  test.engine.evaluate(data::Split::train);
  EXPECT_FALSE(data.augmented);
  test.engine.step(0.01, false);
  EXPECT_TRUE(data.augmented);
}

}  // namespace
}  // namespace sinew::train
