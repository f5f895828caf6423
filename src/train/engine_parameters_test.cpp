// Tests of frozen parameters (model.freeze) and of parameters with a learning rate of their own (optimizer.lr_scale).
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "train/state.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

using Values = std::map<std::string, torch::Tensor>;

spec::Job job_of(const std::string& optimizer) {
  spec::Job job = test_job("mlp");
  job.model.hidden = {12, 8};
  job.optimizer = {.name = optimizer, .lr = 0.01, .weight_decay = 0.1};
  if (optimizer != "adamw") job.optimizer.momentum = 0.9;
  return job;
}

const SyntheticData& data() {
  static const SyntheticData all(data::Task::classification, {10}, 4, 80, 0);
  return all;
}

Values after(const spec::Job& job, int steps) {
  TestEngine test(job, data());
  for (int i = 0; i < steps; ++i) test.engine.step(job.optimizer.lr, false);
  Values values;
  for (const auto& parameter : test.engine.state().parameters) values[parameter.name] = parameter.tensor.clone();
  return values;
}

class Parameters : public testing::TestWithParam<const char*> {};

TEST_P(Parameters, FrozenOnesKeepEveryBitAndOthersAreUnaffected) {
  spec::Job job = job_of(GetParam());
  const Values start = after(job, 0), free = after(job, 1);
  const std::string first = start.begin()->first;
  job.model.freeze = {first};
  const Values once = after(job, 1), later = after(job, 5);
  EXPECT_FALSE(torch::equal(free.at(first), start.at(first)));
  EXPECT_TRUE(torch::equal(later.at(first), start.at(first))) << first;
  for (const auto& [name, value] : free) {
    if (name == first) continue;
    EXPECT_TRUE(torch::equal(once.at(name), value)) << name;
    EXPECT_FALSE(torch::equal(later.at(name), start.at(name))) << name;
  }
}

TEST_P(Parameters, AScaledRateEqualsAJobWithThatRate) {
  spec::Job job = job_of(GetParam());
  const Values fast = after(job, 1);
  job.optimizer.lr = 0.001;
  const Values slow = after(job, 1);
  job.optimizer.lr = 0.01;
  job.optimizer.lr_scale = {"*=0.1", "*bias=1"};  // the last matching pattern counts
  for (const auto& [name, value] : after(job, 1)) {
    const bool bias = name.ends_with("bias");
    EXPECT_TRUE(torch::equal(value, (bias ? fast : slow).at(name))) << name;
    EXPECT_FALSE(torch::equal(value, (bias ? slow : fast).at(name))) << name;
  }
}

TEST_P(Parameters, LanesDoNotChangeABit) {
  spec::Job job = job_of(GetParam());
  job.model.freeze = {"hidden.0.*"};
  job.optimizer.lr_scale = {"*bias=0.5"};
  std::vector<std::string> digests;
  for (const int64_t lanes : {1, 2, 4}) {
    job.trainer.lanes = lanes;
    TestEngine test(job, data());
    for (int i = 0; i < 5; ++i) test.engine.step(job.optimizer.lr, false);
    digests.push_back(to_hex(digest(test.engine.state())));
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

INSTANTIATE_TEST_SUITE_P(Of, Parameters, testing::Values("sgd", "adamw", "rmsprop"));

TEST(ParametersByName, RefusesAPatternThatMatchesNothingAndListsTheNames) {
  spec::Job job = job_of("sgd");
  job.model.freeze = {"encoder.*"};
  try {
    after(job, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("MODEL_PATTERN_MATCHES_NOTHING"));
    EXPECT_NE(std::string(error.what()).find("model.freeze"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'encoder.*'"), std::string::npos) << error.what();
    EXPECT_NE(error.hint.find("from hidden.0.weight to output.bias"), std::string::npos) << error.hint;
  }
  job.model.freeze.clear();
  job.optimizer.lr_scale = {"encoder.*=0.1"};
  EXPECT_THROW(after(job, 0), Error);
}

// A frozen parameter needs no memory for optimizer state. Digests treat the missing state as zeros.
TEST_P(Parameters, FrozenOnesHaveNoOptimizerState) {
  spec::Job job = job_of(GetParam());
  job.model.freeze = {"hidden.0.*"};
  job.trainer.ema_decay = 0.9;
  TestEngine test(job, data());
  for (int i = 0; i < 3; ++i) test.engine.step(job.optimizer.lr, true);
  TrainingState& state = test.engine.state();
  TrainingState full = state;
  for (auto& [name, tensors] : full.optimizer) {
    for (size_t p = 0; p < tensors.size(); ++p) {
      const bool frozen = state.parameters[p].name.starts_with("hidden.0.");
      EXPECT_EQ(tensors[p].numel(), frozen ? 0 : state.parameters[p].tensor.numel()) << state.parameters[p].name;
      if (frozen) tensors[p] = torch::zeros_like(state.parameters[p].tensor);
    }
  }
  EXPECT_EQ(digest(state), digest(full));
  // restore() reads the current form. It also reads that of older versions, which saved zeros for frozen parameters.
  const auto loaded = [](const checkpoint::OwnedSnapshot& taken) {
    checkpoint::Loaded file;
    file.state_json = taken.state_json;
    for (const auto& [part, tensors] : taken.parts) {
      file.parts[part];
      for (const auto& [entry, bytes] : tensors) {
        Array array(entry.dtype, entry.shape);
        std::memcpy(array.bytes.data(), bytes.data(), bytes.size());
        file.parts[part].tensors[entry.name] = std::move(array);
      }
    }
    return file;
  };
  const checkpoint::OwnedSnapshot now = snapshot(state, {}), before = snapshot(full, {});
  EXPECT_LT(now.parts.at("optimizer").size(), before.parts.at("optimizer").size());
  for (const auto* taken : {&now, &before}) {
    TestEngine other(job, data());
    StateFacts facts;
    restore(other.engine.state(), facts, loaded(*taken));
    EXPECT_EQ(digest(other.engine.state()), digest(state));
  }
}

// Under bfloat16, a frozen weight has a shadow too, although updates never change the weight.
TEST(FrozenParameters, HaveAShadow) {
  spec::Job job = job_of("sgd");
  job.trainer.precision = "bf16";
  job.model.freeze = {"hidden.0.*"};
  TestEngine test(job, data());
  const auto& mine = test.engine.state().parameters[0];
  const torch::Tensor used = test.engine.replica(0).parameters()[0].tensor;
  EXPECT_EQ(used.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(used, mine.tensor.to(torch::kBFloat16)));
}

}  // namespace
}  // namespace sinew::train
