// Tests what the layers of known models are counted to do against closed formulas, and that the count changes no bit.
#include "train/layer_count.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/synthetic.h"

namespace sinew::train {
namespace {

using rundir::LayerUse;

LayerUse layer_in(const std::vector<LayerUse>& layers, const std::string& name) {
  const auto found = std::ranges::find(layers, name, &LayerUse::name);
  if (found != layers.end()) return *found;
  std::string all;
  for (const LayerUse& layer : layers) all += layer.name + "; ";
  ADD_FAILURE() << "no layer " << name << " in " << all;
  return {};
}

double flops_in(const std::vector<LayerUse>& layers) {
  double flops = 0;
  for (const LayerUse& layer : layers) flops += layer.flops;
  return flops;
}

rundir::ModelUse use_of(const spec::Job& job, const data::Dataset& data) {
  TestEngine test(job, data, nullptr, /*counts_layers=*/true);
  EXPECT_FALSE(test.engine.model_use().has_value()) << "nothing was computed yet";
  test.engine.step(0.01, false);
  return test.engine.model_use().value_or(rundir::ModelUse());
}

struct Counted {
  const char* name;
  spec::Job job;
  SyntheticData data;
};

std::vector<Counted> counted_jobs() {
  std::vector<Counted> jobs;
  spec::Job mlp = test_job("mlp");
  mlp.model.hidden = {24, 16};
  jobs.push_back({"mlp", mlp, SyntheticData(data::Task::classification, {10}, 4, 107, 31)});
  spec::Job cnn = test_job("cnn");
  cnn.model.channels = {4, 6};
  cnn.model.norm = "batch";
  cnn.model.dropout = 0.3;
  cnn.trainer.ema_decay = 0.9;
  jobs.push_back({"cnn", cnn, SyntheticData(data::Task::classification, {1, 8, 8}, 5, 107, 31)});
  spec::Job resnet = test_job("resnet18");
  resnet.model.width = 4;
  resnet.model.stem = "cifar";
  resnet.trainer.precision = "bf16";
  resnet.trainer.memory_format = "channels_last";
  jobs.push_back({"resnet in bf16", resnet, SyntheticData(data::Task::classification, {3, 8, 8}, 3, 107, 31)});
  spec::Job lstm = test_job("lstm");
  lstm.model.hidden_size = 12;
  lstm.model.embedding = 8;
  lstm.model.layers = 2;
  lstm.model.dropout = 0.2;
  jobs.push_back({"lstm", lstm, SyntheticData(data::Task::next_token, {7}, 11, 107, 31)});
  spec::Job tabular = test_job("tabular");
  tabular.model = spec::default_model("tabular");
  tabular.model.hidden = {24, 16};
  tabular.trainer.max_duration = {6, spec::Duration::Unit::steps};
  jobs.push_back({"tabular", tabular, SyntheticData(data::Task::classification, {10}, 4, 107, 31)});
  return jobs;
}

TEST(LayerCount, LinearLayersMultiplyTwoOrThreeTimes) {
  const Counted test = std::move(counted_jobs()[0]);
  const rundir::ModelUse use = use_of(test.job, test.data);
  constexpr double n = 40;  // samples of a step
  const LayerUse first = layer_in(use.layers, "hidden.0"), second = layer_in(use.layers, "hidden.1"),
                 last = layer_in(use.layers, "output");
  EXPECT_EQ(first.flops, 2 * (2 * 10 * 24 * n)) << "the input of the model has no gradient";
  EXPECT_EQ(second.flops, 3 * (2 * 24 * 16 * n));
  EXPECT_EQ(last.flops, 3 * (2 * 16 * 4 * n));
  EXPECT_EQ(use.flops_per_step, first.flops + second.flops + last.flops);
  EXPECT_EQ(first.parameters, 10 * 24 + 24);
  EXPECT_EQ(first.calls % 8, 0) << "of eight shards";
  EXPECT_GE(first.bytes, 8 * 4 * (10 * 24 + 24) + 4 * n * (10 + 24)) << "each shard reads the weights";
  EXPECT_EQ(use.gradient_bytes, 4 * (10 * 24 + 24 + 24 * 16 + 16 + 16 * 4 + 4));
}

TEST(LayerCount, ConvolutionsAreCountedByTheirPositions) {
  const Counted test = std::move(counted_jobs()[1]);
  const rundir::ModelUse use = use_of(test.job, test.data);
  constexpr double n = 40, k = 3;
  EXPECT_EQ(layer_in(use.layers, "convolutions.0").flops, 2 * (2 * k * k * 1 * 4 * 8 * 8 * n));
  EXPECT_EQ(layer_in(use.layers, "convolutions.1").flops, 3 * (2 * k * k * 4 * 6 * 4 * 4 * n));
  const LayerUse norm = layer_in(use.layers, "norms.0");
  EXPECT_EQ(norm.flops, 0);
  EXPECT_EQ(norm.parameters, 8);
  EXPECT_GE(norm.bytes, 4 * 2 * (4 * 8 * 8 * n)) << "it reads and writes each number at least once";
}

// Attention as a user's module names it. The model is built of plain operators, as that of a program is.
struct Attention final : model::Model {
  Attention() {
    const model::RandomScope scope(random_key({3}));
    const auto add = [&](const char* name, at::IntArrayRef sizes) {
      weights_.push_back({name, torch::randn(sizes).mul_(0.1).set_requires_grad(true)});
    };
    add("blocks.0.attn.qkv.weight", {3 * kWidth, kWidth});
    add("blocks.0.attn.qkv.bias", {3 * kWidth});
    add("head.weight", {3, kWidth});
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor&) override {
    const torch::Tensor qkv = torch::linear(x, weights_[0].tensor, weights_[1].tensor);  // [n, positions, 3 width]
    const auto parts = qkv.reshape({x.size(0), kPositions, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    const torch::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return torch::linear(mixed.transpose(1, 2).reshape({x.size(0), kPositions, kWidth}).mean(1), weights_[2].tensor);
  }
  void set_training(bool) override {}
  std::vector<model::NamedTensor> parameters() override { return weights_; }
  std::vector<model::NamedTensor> buffers() override { return {}; }
  void share(size_t index, const torch::Tensor& memory) override { weights_.at(index).tensor.set_data(memory); }
  bool wants_shadow(size_t) override { return false; }

  static constexpr int64_t kWidth = 16, kPositions = 6, kHeads = 2;
  std::vector<model::NamedTensor> weights_;
};

TEST(LayerCount, AttentionHasTheNamesOfItsModules) {
  const SyntheticData data(data::Task::classification, {Attention::kPositions, Attention::kWidth}, 3, 107, 31);
  TestEngine test(
      test_job("program"), data, [] { return std::make_unique<Attention>(); }, /*counts_layers=*/true);
  test.engine.step(0.01, false);
  const rundir::ModelUse use = test.engine.model_use().value();
  constexpr double n = 40, width = Attention::kWidth, positions = Attention::kPositions;
  EXPECT_EQ(layer_in(use.layers, "blocks.0.attn.qkv").flops, 2 * (2 * positions * width * 3 * width * n));
  EXPECT_EQ(layer_in(use.layers, "head").flops, 3 * (2 * width * 3 * n));
  const LayerUse products = layer_in(use.layers, "scaled_dot_product_attention 5x2x6x8");
  const double once = 4 * positions * positions * width * n;  // the scores and the values
  EXPECT_GE(products.flops, 2.9 * once) << products.flops / once;
  EXPECT_LE(products.flops, 3.6 * once) << products.flops / once;
}

TEST(LayerCount, TheLayersAddUpToAllThatAStepComputes) {
  for (const Counted& test : counted_jobs()) {
    const rundir::ModelUse use = use_of(test.job, test.data);
    TestEngine plain(test.job, test.data);
    plain.engine.step(0.01, false);
    const OperatorWork work = work_of([&] { plain.engine.step(0.01, false); });
    EXPECT_NEAR(flops_in(use.layers), work.flops, 1e-9 * work.flops) << test.name;
    EXPECT_EQ(use.flops_per_step, flops_in(use.layers)) << test.name;
    double named = 0;
    for (const LayerUse& layer : use.layers) named += layer.parameters > 0 ? layer.flops : 0;
    EXPECT_GE(named, 0.9 * use.flops_per_step) << test.name << ": the layers have no names";
  }
}

TEST(LayerCount, TheCountChangesNoBit) {
  for (Counted& test : counted_jobs()) {
    for (const int64_t lanes : {1, 3}) {
      test.job.trainer.lanes = lanes;
      TestEngine plain(test.job, test.data), counts(test.job, test.data, nullptr, /*counts_layers=*/true);
      for (int step = 0; step < 3; ++step) {
        const StepResult expected = plain.engine.step(0.01, true), got = counts.engine.step(0.01, true);
        EXPECT_EQ(got.loss_sum, expected.loss_sum) << test.name;
        EXPECT_EQ(to_hex(digest(counts.engine.state())), to_hex(digest(plain.engine.state())))
            << test.name << ", " << lanes << " lanes, step " << step;
      }
      EXPECT_TRUE(counts.engine.model_use().has_value());
      EXPECT_FALSE(plain.engine.model_use().has_value());
    }
  }
}

TEST(LayerCount, TheWorkOfAllShardsIsThatOfTheSamples) {
  const Counted test = std::move(counted_jobs()[0]);
  TestEngine counts(test.job, test.data, nullptr, /*counts_layers=*/true);
  for (int step = 0; step < 3; ++step) counts.engine.step(0.01, false);  // 40, 40 and 27 samples
  const double per_step = counts.engine.model_use()->flops_per_step;
  EXPECT_NEAR(counts.engine.computed_flops(), per_step * 107 / 40, 1e-6 * per_step);
}

TEST(LayerCount, TheRestOfManyLayersIsOneEntry) {
  std::vector<LayerUse> many;
  for (int64_t i = 0; i < 45; ++i)
    many.push_back({.name = "layer" + std::to_string(i),
                    .calls = 2,
                    .flops = static_cast<double>(i),
                    .bytes = 8,
                    .parameters = i});
  const rundir::ModelUse use = use_in_step(many, 4, 3);
  ASSERT_EQ(use.layers.size(), rundir::ModelUse::kMostLayers + 1);
  EXPECT_EQ(use.layers[0].name, "layer44");
  EXPECT_EQ(use.layers[0].flops, 4 * 44);
  EXPECT_EQ(use.layers[0].calls, 6);
  const LayerUse& other = use.layers.back();
  EXPECT_EQ(other.name, rundir::ModelUse::kOther);
  EXPECT_EQ(other.flops, 4 * (14 * 15 / 2));
  EXPECT_EQ(other.bytes, 4 * 15 * 8);
  EXPECT_EQ(other.calls, 15 * 6);
  EXPECT_EQ(other.parameters, 14 * 15 / 2);
  EXPECT_EQ(use.flops_per_step, 4 * (44 * 45 / 2));
  many.resize(30);
  EXPECT_EQ(use_in_step(many, 4, 3).layers.size(), 30U) << "nothing is left to add up";
}

}  // namespace
}  // namespace sinew::train
