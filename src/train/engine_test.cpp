// Tests the two promises of a step: its bits do not depend on which lane computes a shard, and its numbers equal those
// of plain autograd.
#include "train/engine.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <set>

#include "train/state.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

struct Case {
  const char* name;
  spec::Job job;
  SyntheticData data;
};

// Five small jobs. Together they enable every feature that has changed bits by mistake before.
std::vector<Case> contract_jobs() {
  std::vector<Case> cases;
  // With 107 samples in batches of 40, the third step of an epoch has only 27 samples.
  spec::Job mlp = test_job("mlp");
  mlp.model.hidden = {24, 16};
  mlp.model.norm = "batch";
  mlp.optimizer = {.name = "sgd", .lr = 0.05, .momentum = 0.9, .nesterov = true};
  cases.push_back({"mlp with batch norm", mlp, SyntheticData(data::Task::classification, {10}, 4, 107, 31)});

  spec::Job cnn = test_job("cnn");
  cnn.model.channels = {4, 6};
  cnn.model.dropout = 0.3;
  cnn.trainer.grad_clip_norm = 0.5;
  cnn.trainer.ema_decay = 0.9;
  cnn.data.augment.flip = 0.5;
  cases.push_back({"cnn with dropout, clipping and averaged weights", cnn,
                   SyntheticData(data::Task::classification, {1, 8, 8}, 5, 107, 31)});

  spec::Job resnet = test_job("resnet18");
  resnet.model.width = 4;
  resnet.model.stem = "cifar";
  resnet.trainer.precision = "bf16";
  resnet.trainer.memory_format = "channels_last";
  cases.push_back({"narrow resnet in bfloat16, channels last", resnet,
                   SyntheticData(data::Task::classification, {3, 8, 8}, 3, 107, 31)});

  spec::Job lstm = test_job("lstm");
  lstm.model.hidden_size = 12;
  lstm.model.embedding = 8;
  lstm.model.layers = 2;
  lstm.model.dropout = 0.2;
  lstm.optimizer.name = "rmsprop";
  lstm.optimizer.momentum = 0.5;
  cases.push_back({"lstm over tokens", lstm, SyntheticData(data::Task::next_token, {7}, 11, 107, 31)});

  spec::Job tabular = test_job("tabular");
  tabular.model = spec::default_model("tabular");
  tabular.model.hidden = {24, 16};
  tabular.loss.label_smoothing = 0.1;
  tabular.optimizer.weight_decay = 0.02;
  tabular.optimizer.weight_decay_schedule = "flat_cos";
  tabular.trainer.max_duration = {6, spec::Duration::Unit::steps};  // so the last steps have less dropout and decay
  cases.push_back({"tabular", tabular, SyntheticData(data::Task::classification, {10}, 4, 107, 31)});

  spec::Job focal = test_job("mlp");
  focal.loss.focal_gamma = 1.5;
  focal.loss.class_weights = {1, 2, 0.5, 1};
  cases.push_back(
      {"mlp with a weighted focal loss", focal, SyntheticData(data::Task::classification, {10}, 4, 107, 31)});
  return cases;
}

// Returns the digest after each step. An evaluation follows the second step; its metrics are appended to `metrics`.
std::vector<std::string> digests(const spec::Job& job, const data::Dataset& data, int steps,
                                 std::string* metrics = nullptr) {
  TestEngine test(job, data);
  std::vector<std::string> list;
  for (int i = 0; i < steps; ++i) {
    test.engine.step(job.optimizer.lr, i % 2 == 0);
    if (i == 1) {
      const EvaluationResult result = test.engine.evaluate(data::Split::val);
      for (const auto& [name, value] : result.metrics) {
        char text[64];
        std::snprintf(text, sizeof text, "%s=%a ", name.c_str(), value);  // exact to the last bit
        if (metrics != nullptr) *metrics += text;
      }
    }
    list.push_back(to_hex(digest(test.engine.state())));
  }
  return list;
}

TEST(StepContract, LanesAndOpenMpThreadsDoNotChangeABit) {
  for (Case& test : contract_jobs()) {
    for (const int64_t shards : {7, 8, 12}) {
      test.job.trainer.shards = shards;
      test.job.trainer.lanes = 1;
      omp_set_num_threads(1);
      std::string metrics;
      const auto expected = digests(test.job, test.data, 6, &metrics);
      EXPECT_NE(metrics, "") << test.name;
      for (const int64_t lanes : {2, 4}) {
        for (const int threads : {1, 2}) {
          omp_set_num_threads(threads);
          test.job.trainer.lanes = lanes;
          std::string other_metrics;
          EXPECT_EQ(digests(test.job, test.data, 6, &other_metrics), expected)
              << test.name << ", S " << shards << ", lanes " << lanes;
          EXPECT_EQ(other_metrics, metrics) << test.name;
        }
      }
    }
  }
}

TEST(StepContract, PrefetchingDoesNotChangeABit) {
  for (Case& test : contract_jobs()) {
    test.job.trainer.lanes = 2;
    const auto expected = digests(test.job, test.data, 5);
    test.data.pretend_on_disk();
    EXPECT_EQ(digests(test.job, test.data, 5), expected) << test.name;
  }
}

TEST(StepContract, TheConditionsOfAnExperimentDoNotChangeABit) {
  for (Case& test : contract_jobs()) {
    const auto expected = digests(test.job, test.data, 10);
    test.job.trainer.lanes = 3;
    test.job.data.prefetch_threads = 2;
    test.data.pretend_on_disk();
    TestEngine other(test.job, test.data);
    std::vector<std::string> list;
    std::set<Condition> used;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto condition = static_cast<Condition>(i % kConditions);
      if (other.engine.can_use(condition)) {
        used.insert(condition);
        other.engine.use(condition);
      }
      other.engine.step(test.job.optimizer.lr, i % 2 == 0);
      list.push_back(to_hex(digest(other.engine.state())));
    }
    EXPECT_EQ(list, expected) << test.name;
    EXPECT_EQ(used.size(), kConditions) << test.name;
  }
}

TEST(Engine, UsesOnlyConditionsThatItHas) {
  spec::Job job = test_job("mlp");
  job.data.prefetch_threads = 2;
  SyntheticData data(data::Task::classification, {10}, 4, 107, 31);
  TestEngine in_memory(job, data);
  EXPECT_TRUE(in_memory.engine.can_use(Condition::usual));
  EXPECT_FALSE(in_memory.engine.can_use(Condition::samples_ready)) << "the samples are ready always";
  EXPECT_FALSE(in_memory.engine.can_use(Condition::half_lanes)) << "there is one lane";
  spec::Job limited = job;
  limited.budget.memory = 1 << 30;
  limited.trainer.lanes = 2;
  TestEngine small(limited, data);
  EXPECT_TRUE(small.engine.can_use(Condition::half_lanes));
  EXPECT_FALSE(small.engine.can_use(Condition::memory_busy)) << "its threads need memory of their own";
}

TEST(StepContract, AnEvaluationDoesNotChangeTheState) {
  for (Case& test : contract_jobs()) {
    TestEngine calm(test.job, test.data), other(test.job, test.data);
    for (int i = 0; i < 4; ++i) {
      calm.engine.step(0.01, false);
      other.engine.step(0.01, false);
      other.engine.evaluate(data::Split::val);
      ASSERT_EQ(to_hex(digest(other.engine.state())), to_hex(digest(calm.engine.state()))) << test.name << ' ' << i;
    }
  }
}

TEST(StepContract, EvaluatesTheAveragedWeights) {
  Case test = std::move(contract_jobs().at(1));
  ASSERT_GT(test.job.trainer.ema_decay, 0);
  TestEngine averaged(test.job, test.data);
  for (int i = 0; i < 5; ++i) averaged.engine.step(0.05, false);
  test.job.trainer.ema_decay = 0;
  TestEngine plain(test.job, test.data);
  const auto loss_with = [&](const std::vector<model::NamedTensor>& weights) {
    const torch::NoGradGuard no_grad;
    for (size_t p = 0; p < weights.size(); ++p) plain.engine.state().parameters.at(p).tensor.copy_(weights[p].tensor);
    plain.engine.state_replaced();
    return plain.engine.evaluate(data::Split::val).metrics.at("loss");
  };
  const double found = averaged.engine.evaluate(data::Split::val).metrics.at("loss");
  ASSERT_FALSE(averaged.engine.state().ema.empty());
  EXPECT_EQ(found, loss_with(averaged.engine.state().ema));
  EXPECT_NE(found, loss_with(averaged.engine.state().parameters));
}

TEST(StepContract, AnotherSeedGivesAnotherModel) {
  for (Case& test : contract_jobs()) {
    const auto one = digests(test.job, test.data, 2);
    test.job.trainer.seed = 6;
    EXPECT_NE(digests(test.job, test.data, 2), one) << test.name;
  }
}

TEST(StepContract, OtherNumbersOfShardsGiveNearlyTheSameLoss) {
  spec::Job job = test_job("mlp");
  const SyntheticData data(data::Task::classification, {10}, 4, 200, 0);
  std::vector<double> losses;
  for (const int64_t shards : {1, 2, 5, 8, 40}) {
    job.trainer.shards = shards;
    TestEngine test(job, data);
    double loss = 0;
    for (int i = 0; i < 10; ++i) loss = test.engine.step(0.01, false).loss;
    losses.push_back(loss);
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-4);
}

// Compares the step's gradients with those that plain autograd computes from the whole batch, in the state before the
// step.
TEST(StepContract, GradientsEqualPlainAutogradOverTheWholeBatch) {
  struct Plain {
    const char* model;
    const char* loss;
    data::Task task;
    Shape shape;
  };
  const Plain plains[] = {{"mlp", "cross_entropy", data::Task::classification, {10}},
                          {"svm", "hinge", data::Task::classification, {10}},
                          {"cnn", "bce", data::Task::classification, {1, 8, 8}},
                          {"lstm", "cross_entropy", data::Task::next_token, {7}},
                          {"mlp", "mse", data::Task::regression, {10}},
                          {"linear", "l1", data::Task::regression, {10}}};
  for (const Plain& plain : plains) {
    spec::Job job = test_job(plain.model, 2, 7);
    job.model.channels = {4};
    job.loss.name = plain.loss;
    if (plain.task == data::Task::classification && job.loss.name == "cross_entropy") {
      job.loss.class_weights = {1, 2, 0.5, 1};
      job.loss.label_smoothing = 0.1;
    }
    const SyntheticData data(plain.task, plain.shape, 4, 103, 0);
    TestEngine test(job, data);
    for (int step = 0; step < 3; ++step) {  // the third step has only 23 samples
      const data::StepRange range = test.engine.next_range();
      const data::Permutation order = data::epoch_order(job.trainer.seed, range.epoch, 103);
      std::vector<int64_t> samples;
      for (int64_t i = 0; i < range.count; ++i) samples.push_back(order[range.first + i]);
      const data::Batch batch = data.load(data::Split::train, samples, {job.trainer.seed, range.epoch, true});
      model::Model& model = test.engine.replica(0);
      const Loss::Value loss =
          test.engine.loss()(model.forward(test.engine.to_input(batch)), test.engine.to_target(batch));
      std::vector<torch::Tensor> leaves;
      for (const auto& parameter : model.parameters()) leaves.push_back(parameter.tensor);
      const auto expected = torch::autograd::grad({loss.sum / loss.weight}, leaves);
      const StepResult result = test.engine.step(0.01, true);
      EXPECT_NEAR(result.loss, loss.sum.item<double>() / loss.weight, 1e-5);
      for (size_t p = 0; p < leaves.size(); ++p) {
        const double scale = expected[p].abs().max().item<double>() + 1e-6;
        EXPECT_LT((test.engine.gradients()[p] - expected[p]).abs().max().item<double>() / scale, 1e-5)
            << plain.model << ' ' << plain.loss << " parameter " << p << " step " << step;
      }
    }
  }
}

TEST(StepContract, BuffersTakeTheWeightedMeanOfTheShardsDeltas) {
  spec::Job job = test_job("mlp", 2, 3);
  job.model.norm = "batch";
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  for (const int64_t shards : {1, 3}) {
    job.trainer.shards = shards;
    TestEngine test(job, data);
    const auto parts = data::split_into_shards(40, 40, shards);
    const data::Permutation order = data::epoch_order(job.trainer.seed, 0, 40);
    torch::Tensor mean = torch::zeros({256}, torch::kFloat64);
    for (const auto& [first, last] : parts) {
      std::vector<int64_t> samples;
      for (int64_t i = first; i < last; ++i) samples.push_back(order[i]);
      const data::Batch batch = data.load(data::Split::train, samples, {job.trainer.seed, 0, true});
      const torch::NoGradGuard no_grad;
      const auto& weight = test.engine.state().parameters[0].tensor;
      mean += torch::linear(test.engine.to_input(batch), weight).mean(0).to(torch::kFloat64) *
              static_cast<double>(last - first);
    }
    test.engine.step(0.01, false);
    int means = 0;
    for (const auto& buffer : test.engine.state().buffers) {
      if (buffer.name.ends_with("running_mean")) {
        ++means;
        EXPECT_TRUE(torch::allclose(buffer.tensor, (0.1 * mean / 40).to(torch::kFloat32), 1e-4, 1e-5));
      }
      if (buffer.name.ends_with("num_batches_tracked")) {
        EXPECT_EQ(buffer.tensor.item<int64_t>(), 1);
      }
    }
    EXPECT_EQ(means, 1);
  }
}

// A model with a boolean and an integer buffer, which a forward pass in training changes in the same way for all
// samples.
class Marking final : public model::Model {
 public:
  explicit Marking(std::unique_ptr<model::Model> inner) : inner_(std::move(inner)) {}
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override {
    if (training_) {
      const torch::NoGradGuard no_grad;
      marks_.logical_not_();
      calls_.add_(3);
    }
    return inner_->forward(input, target);
  }
  void set_training(bool on) override { inner_->set_training(training_ = on); }
  std::vector<model::NamedTensor> parameters() override { return inner_->parameters(); }
  std::vector<model::NamedTensor> buffers() override { return {{"marks", marks_}, {"calls", calls_}}; }
  void share(size_t index, const torch::Tensor& memory) override { inner_->share(index, memory); }
  bool wants_shadow(size_t index) override { return inner_->wants_shadow(index); }

 private:
  std::unique_ptr<model::Model> inner_;
  bool training_ = false;
  torch::Tensor marks_ = torch::tensor({true, false, false}), calls_ = torch::zeros({1}, torch::kUInt8);
};

TEST(StepContract, BooleanAndIntegerBuffersChangeOncePerStep) {
  spec::Job job = test_job("mlp", 2, 3);
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  for (const int64_t shards : {1, 3}) {
    job.trainer.shards = shards;
    TestEngine test(job, data,
                    [&] { return std::make_unique<Marking>(model::make_model(job.model, data.info(), 4, 7)); });
    for (const bool first : {false, true, false}) {
      test.engine.step(0.01, false);
      const auto& buffers = test.engine.state().buffers;
      EXPECT_TRUE(torch::equal(buffers[0].tensor, torch::tensor({first, !first, !first}))) << shards;
      EXPECT_EQ(buffers[0].tensor.scalar_type(), torch::kBool);
    }
    EXPECT_EQ(test.engine.state().buffers[1].tensor.item<int64_t>(), 9);
  }
}

// One forward pass changes the buffer in another way. The step is not committed. If it is computed again, it is right.
TEST(StepContract, AnIntegerBufferThatChangesDifferentlyIsADivergedStep) {
  class Erring final : public model::Model {
   public:
    explicit Erring(std::unique_ptr<model::Model> inner) : inner_(std::move(inner)) {}
    torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override {
      const torch::NoGradGuard no_grad;
      calls_.add_(++passes_ == 3 ? 2 : 1);
      const torch::AutoGradMode grad(true);
      return inner_->forward(input, target);
    }
    void set_training(bool on) override { inner_->set_training(on); }
    std::vector<model::NamedTensor> parameters() override { return inner_->parameters(); }
    std::vector<model::NamedTensor> buffers() override { return {{"calls", calls_}}; }
    void share(size_t index, const torch::Tensor& memory) override { inner_->share(index, memory); }
    bool wants_shadow(size_t index) override { return inner_->wants_shadow(index); }

   private:
    std::unique_ptr<model::Model> inner_;
    int passes_ = 0;
    torch::Tensor calls_ = torch::zeros({1}, torch::kInt64);
  };
  const spec::Job job = test_job("mlp");
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  TestEngine test(job, data, [&] { return std::make_unique<Erring>(model::make_model(job.model, data.info(), 4, 7)); });
  const Digest before = digest(test.engine.state());
  try {
    test.engine.step(0.01, false);
    FAIL();
  } catch (const Diverged& diverged) {
    EXPECT_EQ(diverged.code, ErrorCode("TRAIN_BUFFER_CONFLICT"));
  }
  EXPECT_EQ(digest(test.engine.state()), before);
  test.engine.step(0.01, false);
  EXPECT_EQ(test.engine.state().buffers[0].tensor.item<int64_t>(), 1);
}

TEST(StepContract, ControlEntriesGiveTheSameBitsOnAnyLanes) {
  for (Case& test : contract_jobs()) {
    const auto story = [&](int64_t lanes, bool prefetched, bool controlled) {
      test.job.trainer.lanes = lanes;
      if (prefetched) test.data.pretend_on_disk();
      TestEngine engine(test.job, test.data);
      std::vector<std::string> list;
      ControlLog& control = engine.engine.state().control;
      if (controlled) {
        control.append({Step(2), ControlEntry::Kind::learning_rate, 0.5, "asked for"});
        control.append({Step(3), ControlEntry::Kind::batch_size, 56, "asked for"});
        control.append({Step(4), ControlEntry::Kind::checkpoint, 0, "asked for"});
      }
      for (int i = 0; i < 6; ++i) {
        engine.engine.step(0.01 * control.learning_rate_factor(Step(i)), false);
        list.push_back(to_hex(digest(engine.engine.state())));
      }
      return list;
    };
    const auto calm = story(1, false, false), controlled = story(1, false, true);
    // An entry has no effect before its step.
    EXPECT_TRUE(std::equal(calm.begin(), calm.begin() + 2, controlled.begin())) << test.name;
    EXPECT_NE(calm[2], controlled[2]) << test.name;
    EXPECT_EQ(story(2, true, true), controlled) << test.name;
  }
}

TEST(Engine, TrainingReducesTheLoss) {
  for (Case& test : contract_jobs()) {
    test.job.optimizer.lr = 0.01;
    TestEngine engine(test.job, test.data);
    double first = 0, last = 0;
    for (int i = 0; i < 120; ++i) {
      last = engine.engine.step(test.job.optimizer.lr, false).loss;
      if (i == 0) first = last;
    }
    EXPECT_LT(last, 0.6 * first) << test.name;
    EXPECT_GT(engine.engine.evaluate(data::Split::val).metrics.at("accuracy"), 0.5) << test.name;
  }
}

// A data set in which one sample has an infinite input.
class Poisoned final : public AlteredData {
 public:
  using AlteredData::AlteredData;
  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    data::Batch batch = data_.load(split, samples, context);
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == 17) batch.input.as<float>()[i * 10] = INFINITY;
    }
    return batch;
  }
};

TEST(Engine, DivergenceNamesTheStepAndTheSamples) {
  const SyntheticData clean(data::Task::classification, {10}, 4, 40, 0);
  const Poisoned data(clean);
  TestEngine test(test_job("mlp", 2), data);
  const std::string text = refused_step(test.engine);
  EXPECT_NE(text.find("step 0"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 40 samples (train#17)"), std::string::npos) << text;
  EXPECT_NE(text.find("the input is not finite"), std::string::npos) << text;
}

TEST(Engine, DivergenceNamesTheFirstLayer) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  spec::Job job = test_job("mlp", 2);
  job.model.hidden = {8, 8, 8};
  TestEngine test(job, data);
  test.engine.state().parameters.at(2).tensor.fill_(3e38);  // hidden.1.weight is finite, but its products are not
  const std::string text = refused_step(test.engine);
  EXPECT_NE(text.find("hidden.1.weight"), std::string::npos) << text;
}

TEST(State, ACheckpointKeepsEveryBit) {
  for (Case& test : contract_jobs()) {
    TestEngine one(test.job, test.data);
    for (int i = 0; i < 4; ++i) one.engine.step(0.01, false);
    checkpoint::OwnedSnapshot taken = snapshot(one.engine.state(), {});
    checkpoint::Loaded loaded;
    loaded.state_json = taken.state_json;
    for (auto& [part, tensors] : taken.parts) {
      for (auto& [entry, bytes] : tensors) {
        Array array;
        array.dtype = entry.dtype;
        array.shape = entry.shape;
        array.bytes = std::move(bytes);
        loaded.parts[part].tensors[entry.name] = std::move(array);
      }
    }
    test.job.trainer.lanes = 2;
    TestEngine other(test.job, test.data);
    StateFacts facts;
    restore(other.engine.state(), facts, loaded);
    other.engine.state_replaced();
    EXPECT_EQ(digest(other.engine.state()), taken.digest) << test.name;
    for (int i = 0; i < 4; ++i) {
      one.engine.step(0.01, false);
      other.engine.step(0.01, false);
      ASSERT_EQ(digest(other.engine.state()), digest(one.engine.state())) << test.name << " step " << i;
    }
  }
}

TEST(State, RefusesACheckpointOfAnotherModelAndNamesTheTensors) {
  const SyntheticData data(data::Task::classification, {10}, 4, 40, 0);
  TestEngine narrow(test_job("mlp"), data);
  checkpoint::OwnedSnapshot taken = snapshot(narrow.engine.state(), {});
  checkpoint::Loaded loaded;
  loaded.state_json = taken.state_json;
  for (auto& [part, tensors] : taken.parts) {
    for (auto& [entry, bytes] : tensors) {
      if (entry.name == "output.bias") continue;
      loaded.parts[part].tensors[entry.name] = Array(entry.dtype, entry.shape);
    }
  }
  spec::Job wide = test_job("mlp");
  wide.model.hidden = {300};
  TestEngine other(wide, data);
  StateFacts facts;
  try {
    restore(other.engine.state(), facts, loaded);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("CHECKPOINT_MISMATCH"));
    EXPECT_NE(std::string(error.what()).find("missing output.bias [4]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("hidden.0.weight is Float[256,10], the model has Float[300,10]"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace sinew::train
