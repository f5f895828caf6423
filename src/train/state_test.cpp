// Tests of the digest and the snapshot of a state, on any number of lanes.
#include "train/state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "train/lanes.h"

namespace sinew::train {
namespace {

torch::Tensor some(at::IntArrayRef sizes) {
  return torch::arange(c10::multiply_integers(sizes), torch::kFloat32).sin().reshape(sizes);
}

// Returns a state whose tensors have several blocks or none, in several memory orders. One parameter is frozen and
// therefore has no optimizer state.
TrainingState some_state() {
  TrainingState state;
  state.step = Step(9);
  state.parameters = {{"wide", some({1100, 700})},
                      {"none", torch::empty({0, 4})},
                      {"image", some({64, 48, 9, 9}).contiguous(torch::MemoryFormat::ChannelsLast)},
                      {"turned", some({600, 900}).t()}};
  state.buffers = {{"count", torch::tensor(int64_t{7})}, {"mean", some({3})}};
  for (const auto& [name, tensor] : state.parameters) state.ema.push_back({name, tensor.clone() * 2});
  auto& momentum = state.optimizer["momentum"];
  for (const auto& [name, tensor] : state.parameters) momentum.push_back(some(tensor.sizes()) * 3);
  momentum[0] = torch::empty({0});
  state.optimizer_steps = {0, 9, 9, 9};
  return state;
}

bool same_bytes(const Buffer& bytes, const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.contiguous();
  return bytes.size() == plain.nbytes() &&
         (bytes.size() == 0 || std::memcmp(bytes.data(), plain.const_data_ptr(), bytes.size()) == 0);
}

TEST(State, DigestAndSnapshotAreTheSameOnAnyLanes) {
  const TrainingState state = some_state();
  const Digest alone = digest(state);
  for (const int count : {1, 2, 5}) {
    Lanes lanes(count);
    EXPECT_EQ(digest(state, &lanes), alone) << count;
    const checkpoint::OwnedSnapshot taken = snapshot(state, {}, &lanes);
    EXPECT_EQ(taken.digest, alone) << count;
    std::map<std::string, torch::Tensor> all;
    for (const auto* list : {&state.parameters, &state.buffers}) {
      for (const auto& item : *list) all["model/" + item.name] = item.tensor;
    }
    for (const auto& item : state.ema) all["ema/" + item.name] = item.tensor;
    for (size_t p = 1; p < state.parameters.size(); ++p)
      all["optimizer/momentum." + state.parameters[p].name] = state.optimizer.at("momentum")[p];
    for (const auto& [part, tensors] : taken.parts) {
      for (const auto& [entry, bytes] : tensors) {
        const auto found = all.find(part + "/" + entry.name);
        ASSERT_NE(found, all.end()) << part << "/" << entry.name;
        EXPECT_TRUE(same_bytes(bytes, found->second)) << found->first << ", " << count << " lanes";
        all.erase(found);
      }
    }
    EXPECT_TRUE(all.empty()) << all.begin()->first;
  }
}

// Changing one bit anywhere, even in the last bytes of a block, changes the digest.
TEST(State, TheDigestCoversEveryByte) {
  TrainingState state = some_state();
  Lanes lanes(2);
  const Digest before = digest(state, &lanes);
  float* values = state.parameters[0].tensor.data_ptr<float>();
  for (const int64_t at : {int64_t{0}, int64_t{262143}, int64_t{262144}, state.parameters[0].tensor.numel() - 1}) {
    const float kept = values[at];
    values[at] = -kept;
    EXPECT_NE(digest(state, &lanes), before) << at;
    values[at] = kept;
  }
  EXPECT_EQ(digest(state, &lanes), before);
}

// Converts a snapshot to what loading it from disk would return. The result takes over the snapshot's memory.
checkpoint::Loaded loaded_of(checkpoint::OwnedSnapshot&& taken) {
  checkpoint::Loaded loaded;
  loaded.state_json = taken.state_json;
  for (auto& [part, tensors] : taken.parts) {
    for (auto& [entry, bytes] : tensors) {
      Array& array = loaded.parts[part].tensors[entry.name];
      array.dtype = entry.dtype;
      array.shape = entry.shape;
      array.bytes = std::move(bytes);
    }
  }
  return loaded;
}

TEST(State, SavesTextThatIsNotUtf8) {
  TrainingState state = some_state();
  state.evaluation.stop = "\xff";
  StateFacts facts;
  facts.resolved_job = "name: \xc3";
  EXPECT_NO_THROW(loaded_of(snapshot(state, facts)));
}

TEST(State, ACheckpointKeepsTheEvaluationState) {
  TrainingState state = some_state(), other = some_state();
  state.evaluation.monitor = "val/accuracy";
  state.evaluation.best = 0.75;
  state.evaluation.best_step = Step(8);
  state.evaluation.best_steps = {Step(3), Step(8)};
  state.evaluation.patience.best = 0.125;
  state.evaluation.patience.step = Step(7);
  state.evaluation.patience.without_improvement = 2;
  StateFacts facts;
  restore(other, facts, loaded_of(snapshot(state, {})));
  EXPECT_EQ(digest(other), digest(state));
  EXPECT_EQ(other.evaluation.monitor, state.evaluation.monitor);
  EXPECT_EQ(other.evaluation.best_steps, state.evaluation.best_steps);
  EXPECT_EQ(other.evaluation.patience.best, state.evaluation.patience.best);
  EXPECT_EQ(other.evaluation.patience.step, state.evaluation.patience.step);
  other.evaluation.patience.best = 0.25;
  EXPECT_NE(digest(other), digest(state));
}

// Earlier versions saved one best value for both monitors.
TEST(State, AnOlderEvaluationHasTheSameDigest) {
  TrainingState state = some_state(), other = some_state();
  state.evaluation.best = state.evaluation.patience.best = 0.75;
  state.evaluation.best_step = state.evaluation.patience.step = Step(8);
  checkpoint::OwnedSnapshot taken = snapshot(state, {});
  const Digest before = taken.digest;
  auto document = nlohmann::json::parse(taken.state_json);
  for (const char* name : {"best_steps", "monitor", "patience_best", "patience_step"}) {
    ASSERT_TRUE(document.at("evaluation").contains(name));
    document.at("evaluation").erase(name);
  }
  taken.state_json = document.dump();
  StateFacts facts;
  restore(other, facts, loaded_of(std::move(taken)));
  EXPECT_EQ(digest(other), before);
  EXPECT_EQ(other.evaluation.best_steps, std::vector<Step>{Step(8)});
  EXPECT_EQ(other.evaluation.patience.best, 0.75);
}

}  // namespace
}  // namespace sinew::train
