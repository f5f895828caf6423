// Tests of how an engine without other members audits its own shards.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "train/engine.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

// Data that gives one wrong value in load number `wrong_load` of evaluation samples, counted from 0.
class Unsteady final : public data::Dataset {
 public:
  const data::DataInfo& info() const override { return data_.info(); }
  int64_t size(data::Split split) const override { return data_.size(split); }
  std::string describe(data::Split split, int64_t sample) const override { return data_.describe(split, sample); }
  bool in_memory() const override { return true; }
  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    data::Batch batch = data_.load(split, samples, context);
    if (split == data::Split::val && loads_++ == wrong_load) batch.input.as<float>()[0] += 3;
    return batch;
  }
  int64_t wrong_load = -1;

 private:
  SyntheticData data_{data::Task::classification, {10}, 4, 107, 31};
  mutable std::atomic<int64_t> loads_{0};
};

spec::Job audited_job(double fraction, int lanes = 2) {
  spec::Job job = test_job("mlp", lanes, 5);
  job.model.norm = "batch";
  job.cluster.audit = fraction;
  return job;
}

// Counts how often each shard is computed. Changes bits of a gradient in those computations of one shard whose numbers,
// counted from 0, are in `wrong`.
struct AuditedEngine {
  explicit AuditedEngine(const spec::Job& job, Reducer* reducer = nullptr)
      : prefetcher(data, job.trainer.seed, 2, 1 << 24),
        own(make_local_reducer()),
        engine(EngineOptions{
            .job = job,
            .dataset = &data,
            .prefetcher = &prefetcher,
            .reducer = reducer != nullptr ? reducer : own.get(),
            .faults = {.in_shard = [this](const Work& work, bool again, std::vector<torch::Tensor>& gradients) {
              take(work, again, gradients);
            }}}) {}
  void take(const Work& work, bool again, std::vector<torch::Tensor>& gradients) {
    const std::lock_guard lock(mutex);
    const int64_t before = computed[{work.step, work.shard}]++;
    EXPECT_EQ(again, before > 0);
    if (work.step != 1 || work.shard != 2 || !wrong.contains(before)) return;
    gradients[1] = gradients[1].clone();
    static_cast<unsigned char*>(gradients[1].mutable_data_ptr())[0] ^= static_cast<unsigned char>(1 + before);
  }
  std::string failure_of_step() {
    try {
      engine.step(0.1, false);
    } catch (const MemoryChanged& changed) {
      EXPECT_EQ(changed.code, ErrorCode("TRAIN_MEMORY_CHANGED"));
      return changed.what();
    }
    return "";
  }

  Unsteady data;
  data::Prefetcher prefetcher;
  std::unique_ptr<Reducer> own;
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, int64_t> computed;
  std::set<int64_t> wrong;
  Engine engine;
};

TEST(EngineAudit, ComputesTheChosenShardsTwiceAndChangesNoBit) {
  AuditedEngine none(audited_job(0)), some(audited_job(0.4, 1)), all(audited_job(1));
  for (int64_t step = 0; step < 9; ++step) {
    for (AuditedEngine* one : {&none, &some, &all}) EXPECT_EQ(one->failure_of_step(), "");
    EXPECT_EQ(digest(none.engine.state()), digest(some.engine.state()));
    EXPECT_EQ(digest(none.engine.state()), digest(all.engine.state()));
    const Audit audit = audit_of(some.engine.state().seed, Step(step), 5, 0.4);
    for (int64_t shard = 0; shard < 5; ++shard) {
      const std::pair at(step, shard);
      const int64_t once = none.computed[at];  // 0 if the shard has no samples
      EXPECT_EQ(once, step % 3 == 2 && shard == 4 ? 0 : 1) << step << " " << shard;
      EXPECT_EQ(some.computed[at], audit.contains(ShardIndex(shard)) ? 2 * once : once);
      EXPECT_EQ(all.computed[at], 2 * once);
    }
  }
  const auto expected = none.engine.evaluate(data::Split::val);
  EXPECT_EQ(all.engine.evaluate(data::Split::val).metrics, expected.metrics);
}

TEST(EngineAudit, ADifferenceIsJudgedByAThirdComputation) {
  const std::vector<std::pair<std::set<int64_t>, std::string>> cases = {
      {{0}, "the first result was wrong"}, {{1}, "the second result was wrong"}, {{0, 1, 2}, "cannot be trusted"}};
  for (const auto& [wrong, said] : cases) {
    AuditedEngine one(audited_job(1));
    one.wrong = wrong;
    EXPECT_EQ(one.failure_of_step(), "");
    const Digest before = digest(one.engine.state());
    const std::string failure = one.failure_of_step();
    EXPECT_NE(failure.find("step 1, shard 2 "), std::string::npos) << failure;
    EXPECT_NE(failure.find(said), std::string::npos) << failure;
    EXPECT_EQ(digest(one.engine.state()), before) << "the step is not committed";
    EXPECT_EQ((one.computed[{1, 2}]), 3);
    EXPECT_EQ((one.computed[{1, 1}]), 2);
  }
}

TEST(EngineAudit, AnEvaluationIsAuditedToo) {
  AuditedEngine right(audited_job(0));
  const auto expected = right.engine.evaluate(data::Split::val);
  AuditedEngine unseen(audited_job(0, 1));
  unseen.data.wrong_load = 0;
  EXPECT_NE(unseen.engine.evaluate(data::Split::val).metrics, expected.metrics);
  for (const int64_t load : {0, 1, 3}) {
    AuditedEngine seen(audited_job(1, 1));
    seen.data.wrong_load = load;
    EXPECT_THROW(seen.engine.evaluate(data::Split::val), MemoryChanged) << load;
    EXPECT_EQ(seen.engine.evaluate(data::Split::val).metrics, expected.metrics);
  }
}

// A reducer that behaves as if there were other members. These would audit, so this engine computes each shard once.
class WithPeers final : public Reducer {
 public:
  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark> mark, const Audit& audit, const Purpose&) override {
    audits.push_back(audit);
    local_->begin(shards, gradients, std::move(control_message), mark, audit);
    left_ = audit.shards;
  }
  bool compares() const override { return true; }
  std::optional<ShardTask> next_shard() override {
    if (const auto task = local_->next_shard()) return task;
    if (left_.empty()) return std::nullopt;
    const ShardIndex shard(left_.back());
    left_.pop_back();
    return ShardTask{shard, true};
  }
  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override { local_->deliver(shard, std::move(leaf)); }
  void deliver_audit(ShardIndex, std::optional<Contribution> leaf) override { audited += leaf ? 1 : 0; }
  void reduce() override { local_->reduce(); }
  Reduced reduced() override { return local_->reduced(); }
  std::vector<Audit> audits;
  int64_t audited = 0;

 private:
  std::vector<int64_t> left_;
  std::unique_ptr<Reducer> local_ = make_local_reducer();
};

TEST(EngineAudit, WithOtherMembersTheReducerDecides) {
  WithPeers reducer;
  AuditedEngine one(audited_job(1, 1), &reducer);
  one.engine.step(0.1, false);
  ASSERT_EQ(reducer.audits.size(), 1U);
  EXPECT_EQ(reducer.audits[0].shards.size(), 5U);
  EXPECT_TRUE(reducer.audits[0].all);
  EXPECT_EQ(reducer.audited, 5);
  for (int64_t shard = 0; shard < 5; ++shard) EXPECT_EQ((one.computed[{0, shard}]), 2);
  one.engine.evaluate(data::Split::val);
  EXPECT_TRUE(reducer.audits[1].evaluation);
  AuditedEngine alone(audited_job(0), nullptr);
  alone.engine.step(0.1, false);
  EXPECT_EQ(digest(one.engine.state()), digest(alone.engine.state()));
}

}  // namespace
}  // namespace sinew::train
