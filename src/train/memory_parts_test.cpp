// Tests that every bit of a state belongs to one part, and that a round of all parts notices a changed bit.
#include "train/memory_parts.h"

#include <gtest/gtest.h>

#include <cstring>

#include "train/state.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

std::byte* bytes_of(const torch::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

std::vector<Digest> digests_of(const MemoryParts& parts) {
  std::vector<Digest> digests;
  for (int64_t part = 0; part < parts.count(); ++part) digests.push_back(parts.digest(part));
  return digests;
}

TEST(MemoryParts, EveryByteIsInOnePart) {
  // no random numbers: other tests in this process forbid them outside of a keyed scope
  const std::vector<torch::Tensor> tensors = {torch::linspace(-1, 1, 900), torch::Tensor(), torch::ones({1}),
                                              torch::zeros({0}), torch::linspace(0, 9, 12000).view({40, 300})};
  MemoryParts parts;
  for (const torch::Tensor& tensor : tensors) parts.add(tensor);
  ASSERT_GT(parts.count(), 3);
  const auto before = digests_of(parts);
  int64_t moved_on = 0;  // the part of the last changed byte; the parts are in the order of the bytes
  for (const torch::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    for (size_t at = 0; at < tensor.nbytes(); at += 7) {
      bytes_of(tensor)[at] ^= std::byte{16};
      const auto after = digests_of(parts);
      std::vector<int64_t> differ;
      for (size_t i = 0; i < after.size(); ++i) {
        if (after[i] != before[i]) differ.push_back(static_cast<int64_t>(i));
      }
      ASSERT_EQ(differ.size(), 1U);
      ASSERT_GE(differ[0], moved_on);
      moved_on = differ[0];
      bytes_of(tensor)[at] ^= std::byte{16};
    }
  }
  EXPECT_EQ(moved_on, parts.count() - 1);
}

TEST(MemoryParts, TheirNumberIsBounded) {
  MemoryParts none, small, large;
  EXPECT_EQ(none.count(), 1);
  EXPECT_EQ(none.digest(0), none.digest(0));
  small.add(torch::zeros({100}));
  EXPECT_EQ(small.count(), 1);
  large.add(torch::zeros({1 << 20}));
  EXPECT_EQ(large.count(), MemoryParts::kMostParts);
}

// A reducer that behaves as if there were other members. It keeps the marks.
class Marked final : public Reducer {
 public:
  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark> mark, const Audit& audit, const Purpose&) override {
    if (mark) marks.push_back(*mark);
    local_->begin(shards, gradients, std::move(control_message), mark, audit);
  }
  bool compares() const override { return has_peers; }
  std::optional<ShardTask> next_shard() override { return local_->next_shard(); }
  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override { local_->deliver(shard, std::move(leaf)); }
  void reduce() override { local_->reduce(); }
  Reduced reduced() override { return local_->reduced(); }
  std::vector<Mark> marks;
  bool has_peers = true;

 private:
  std::unique_ptr<Reducer> local_ = make_local_reducer();
};

spec::Job job_with_every_kind_of_state() {
  spec::Job job = test_job("cnn");
  job.model.channels = {8, 16};
  job.model.norm = "batch";
  job.trainer.precision = "bf16";
  job.trainer.ema_decay = 0.9;
  job.optimizer = {.name = "adamw", .lr = 0.01};
  job.model.freeze = {"*weight"};
  return job;
}

struct MarkedEngine {
  explicit MarkedEngine(const spec::Job& job, OnWork on_work = nullptr)
      : data(data::Task::classification, {1, 8, 8}, 4, 80, 0),
        prefetcher(data, job.trainer.seed, 1, 1 << 24),
        engine(EngineOptions{.job = job,
                             .dataset = &data,
                             .prefetcher = &prefetcher,
                             .reducer = &reducer,
                             .on_work = std::move(on_work)}) {}
  void steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) engine.step(0, false);  // with a rate of 0, differences stay as they are
  }
  std::vector<std::pair<std::string, torch::Tensor>> tensors() {
    std::vector<std::pair<std::string, torch::Tensor>> all;
    TrainingState& state = engine.state();
    for (const auto& [name, tensor] : state.parameters) all.emplace_back(name, tensor);
    for (const auto& [name, tensor] : state.buffers) all.emplace_back(name, tensor);
    for (const auto& [name, tensor] : state.ema) all.emplace_back("ema " + name, tensor);
    for (const auto& [name, list] : state.optimizer) {
      for (const torch::Tensor& tensor : list) all.emplace_back(name, tensor);
    }
    std::erase_if(all, [](const auto& one) { return one.second.numel() == 0; });
    return all;
  }
  SyntheticData data;
  data::Prefetcher prefetcher;
  Marked reducer;
  Engine engine;
};

TEST(EngineMemory, EqualMembersGiveEqualMarks) {
  MarkedEngine one(job_with_every_kind_of_state()), other(job_with_every_kind_of_state());
  one.steps(5);
  other.steps(5);
  ASSERT_EQ(one.reducer.marks.size(), 5U);
  EXPECT_EQ(one.reducer.marks, other.reducer.marks);
  EXPECT_EQ(one.reducer.marks[3].step, 3);
}

TEST(EngineMemory, AFlippedBitOfAnyTensorChangesAMarkWithinARound) {
  const spec::Job job = job_with_every_kind_of_state();
  MarkedEngine right(job);
  right.steps(MemoryParts::kMostParts + 1);
  const size_t tensors = right.tensors().size();
  ASSERT_GT(tensors, 20U);
  for (size_t i = 0; i < tensors; ++i) {
    MarkedEngine wrong(job);
    wrong.steps(1);
    const auto [name, tensor] = wrong.tensors()[i];
    bytes_of(tensor)[tensor.nbytes() / 2] ^= std::byte{1};
    wrong.steps(MemoryParts::kMostParts);
    EXPECT_NE(wrong.reducer.marks, right.reducer.marks) << name;
  }
}

TEST(EngineMemory, AComparisonCoversTheWholeState) {
  MarkedEngine one(job_with_every_kind_of_state());
  one.steps(2);
  one.reducer.marks.clear();
  one.engine.compare(digest(one.engine.state()));
  ASSERT_EQ(one.reducer.marks.size(), 1U);
  EXPECT_EQ(one.reducer.marks[0].part, Mark::kWhole);
  EXPECT_EQ(one.reducer.marks[0].step, 2);
  one.steps(1);  // the comparison leaves the engine as it was
  EXPECT_EQ(one.engine.state().step, Step(3));
}

torch::Tensor first_frozen(Engine& engine) {
  for (const auto& [name, tensor] : engine.state().parameters) {
    if (name.ends_with("weight")) return tensor;
  }
  return {};
}

TEST(EngineMemory, AWorkerAloneNoticesAChangedFrozenParameter) {
  MarkedEngine alone(job_with_every_kind_of_state());
  alone.reducer.has_peers = false;
  alone.steps(MemoryParts::kMostParts);
  alone.engine.check_memory();
  const torch::Tensor frozen = first_frozen(alone.engine);
  bytes_of(frozen)[0] ^= std::byte{1};
  EXPECT_THROW(alone.engine.check_memory(), MemoryChanged);
  try {
    alone.steps(MemoryParts::kMostParts);
    FAIL();
  } catch (const MemoryChanged& changed) {
    EXPECT_EQ(changed.code, ErrorCode("TRAIN_MEMORY_CHANGED"));
  }
  alone.engine.state_replaced();  // the state was restored, whatever it was before
  alone.engine.check_memory();
  alone.steps(MemoryParts::kMostParts);
}

// The memory changes while the shards of a step are computed from it.
TEST(EngineMemory, AWorkerAloneDoesNotCommitAStepOfAChangedState) {
  spec::Job job = test_job("mlp");
  job.model.hidden = {4};
  torch::Tensor trained;
  bool flips = false;
  MarkedEngine alone(job, [&](int, const Work& work) {
    if (flips && work.kind == Work::Kind::computing) bytes_of(trained)[0] ^= std::byte{1}, flips = false;
  });
  alone.reducer.has_peers = false;
  trained = alone.engine.state().parameters[0].tensor;
  alone.steps(1);
  flips = true;
  EXPECT_THROW(alone.steps(1), MemoryChanged);
  EXPECT_EQ(alone.engine.state().step, Step(1));
}

}  // namespace
}  // namespace sinew::train
