// Tests loading weights into a new state: under other names, from several files, and beside reinitialised parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "train/state.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

using testing::HasSubstr;

const SyntheticData& data() {
  static const SyntheticData all(data::Task::classification, {6}, 3, 40, 0);
  return all;
}

class WarmStart : public testing::Test {
 protected:
  WarmStart() : path_("/tmp/sinew-warm-start-test-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
    job_.model.hidden = {5};
  }
  ~WarmStart() override { std::filesystem::remove_all(path_); }

  // Writes a file with these tensors, each filled with a different number. Returns its path.
  std::string file(const std::string& name, const std::vector<std::pair<std::string, Shape>>& tensors,
                   DType dtype = DType::f32) {
    std::vector<Buffer> held;
    std::vector<checkpoint::TensorBytes> list;
    for (const auto& [tensor, shape] : tensors) {
      const torch::Tensor values = torch::full(at::IntArrayRef(shape), 0.5 + static_cast<double>(held.size()));
      const torch::Tensor kept = dtype == DType::f32 ? values : values.to(torch::kBFloat16);
      held.emplace_back(kept.nbytes());
      std::memcpy(held.back().data(), kept.const_data_ptr(), kept.nbytes());
      list.push_back({tensor, dtype, shape, std::span(held.back().data(), held.back().size())});
    }
    checkpoint::write_safetensors(system_disk(), path_ + "/" + name, list, {});
    return path_ + "/" + name;
  }
  TrainingState fresh() { return TestEngine(job_, data()).engine.state(); }
  static float first(const TrainingState& state, const std::string& name) {
    for (const auto& item : state.parameters) {
      if (item.name == name) return item.tensor.flatten()[0].item<float>();
    }
    throw Error("TEST_NO_TENSOR", "no " + name, "");
  }
  static std::string refusal(TrainingState& state, const spec::WeightSource& from) {
    try {
      return warm_start(state, from, {}, system_disk());
    } catch (const Error& error) {
      return to_string(error) + " / " + error.hint;
    }
  }

  std::string path_;
  spec::Job job_ = test_job("mlp");
};

const std::vector<std::pair<std::string, Shape>> kOthers = {
    {"net.in.weight", {5, 6}}, {"net.in.bias", {5}}, {"net.out.weight", {3, 5}}, {"net.out.bias", {3}}};
const std::vector<std::string> kRules = {"net.in.*=hidden.0.*", "net.out.*=output.*"};

TEST_F(WarmStart, TakesWeightsUnderOtherNames) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    TrainingState state = fresh();
    const std::string said =
        warm_start(state, {file("a.safetensors", kOthers, dtype), kRules, true}, {}, system_disk());
    EXPECT_THAT(said, HasSubstr("4 tensors"));
    EXPECT_EQ(first(state, "hidden.0.weight"), 0.5F);
    EXPECT_EQ(first(state, "hidden.0.bias"), 1.5F);
    EXPECT_EQ(first(state, "output.weight"), 2.5F);
    EXPECT_EQ(first(state, "output.bias"), 3.5F);
  }
}

TEST_F(WarmStart, ReinitialisedParametersKeepTheirInitialValues) {
  TrainingState state = fresh();
  const float made = first(state, "output.weight");
  auto tensors = kOthers;
  tensors[2].second = {1000, 5};  // the head of another task
  tensors[3].second = {1000};
  warm_start(state, {file("a.safetensors", tensors), kRules, true}, {"output.*"}, system_disk());
  EXPECT_EQ(first(state, "output.weight"), made);
  EXPECT_EQ(first(state, "hidden.0.weight"), 0.5F);
}

TEST_F(WarmStart, ListsEveryMismatch) {
  TrainingState state = fresh();
  auto tensors = kOthers;
  tensors[0].second = {5, 7};
  tensors[3].first = "net.out.extra";
  const std::string said = refusal(state, {file("a.safetensors", tensors), kRules, true});
  EXPECT_THAT(said, HasSubstr("net.in.weight (as hidden.0.weight) is f32 [5, 7], the model has f32 [5, 6]"));
  EXPECT_THAT(said, HasSubstr("missing: output.bias f32 [3]"));
  EXPECT_THAT(said, HasSubstr("unexpected: net.out.extra (as output.extra) f32 [3]"));
  EXPECT_THAT(said, HasSubstr("[WEIGHTS_MISMATCH]"));
  EXPECT_THAT(refusal(state, {file("b.safetensors", kOthers), {}, true}), HasSubstr("model.init_from.map: ['"));
}

TEST_F(WarmStart, NotStrictReportsTheTensorsThatItLeftOut) {
  TrainingState state = fresh();
  const std::string said = refusal(state, {file("a.safetensors", kOthers), {"net.in.*=hidden.0.*"}, false});
  EXPECT_THAT(said, HasSubstr("2 tensors; 2 tensors of the model are not in it: output.weight output.bias"));
  EXPECT_THAT(said, HasSubstr("2 of its tensors are not used"));
}

TEST_F(WarmStart, ReadsAFileInPartsByItsIndex) {
  file("one.safetensors", {kOthers[0], kOthers[1]});
  file("two.safetensors", {kOthers[2], kOthers[3]});
  const std::string index = path_ + "/model.safetensors.index.json";
  std::ofstream(index) << R"({"metadata": {}, "weight_map": {"net.in.weight": "one.safetensors",
    "net.in.bias": "one.safetensors", "net.out.weight": "two.safetensors", "net.out.bias": "two.safetensors"}})";
  TrainingState state = fresh();
  warm_start(state, {index, kRules, true}, {}, system_disk());
  EXPECT_EQ(first(state, "output.bias"), 1.5F);
  for (const char* bad :
       {"[]", "{}", R"({"weight_map": {"a": 3}})", R"({"weight_map": {"a": "../one.safetensors"}})", "{"}) {
    std::ofstream(index, std::ios::trunc) << bad;
    EXPECT_THROW(warm_start(state, {index, kRules, true}, {}, system_disk()), Error) << bad;
  }
}

TEST_F(WarmStart, AveragesStartAtTheLoadedWeights) {
  job_.trainer.ema_decay = 0.9;
  TrainingState state = fresh();
  warm_start(state, {file("a.safetensors", kOthers), kRules, true}, {}, system_disk());
  for (size_t p = 0; p < state.parameters.size(); ++p)
    EXPECT_TRUE(torch::equal(state.ema[p].tensor, state.parameters[p].tensor));
}

}  // namespace
}  // namespace sinew::train
