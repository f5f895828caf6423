// Tests of what the engine reports about each lane's work, and of how a failing shard ends a step.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "train/engine.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

// An engine that records the work that its lanes report. If `fails` is set, shard 1 fails.
struct RecordingEngine {
  explicit RecordingEngine(const spec::Job& job, Reducer* reducer = nullptr)
      : prefetcher(data, job.trainer.seed, 2, 1 << 24),
        own(make_local_reducer()),
        engine(EngineOptions{.job = job,
                             .dataset = &data,
                             .prefetcher = &prefetcher,
                             .reducer = reducer != nullptr ? reducer : own.get(),
                             .on_work = [this](int lane, const Work& work) { take(lane, work); }}) {}
  void take(int lane, const Work& work) {
    const std::lock_guard lock(mutex);
    if (work.kind == Work::Kind::computing) lanes.insert(lane);
    recorded.push_back(work);
    if (fails && work.kind == Work::Kind::computing && work.shard == 1)
      throw Error("TEST_SHARD", "no such shard", "try another");
  }

  SyntheticData data{data::Task::classification, {10}, 4, 107, 31};
  data::Prefetcher prefetcher;
  std::unique_ptr<Reducer> own;
  std::mutex mutex;
  std::vector<Work> recorded;
  std::set<int> lanes;  // that computed shards
  bool fails = false;
  Engine engine;
};

TEST(EngineWork, ReportsEveryShardWithItsSamples) {
  RecordingEngine test(test_job("mlp", 1, 4));
  test.engine.step(0.1, false);
  using Kind = Work::Kind;
  std::vector<Work> expected = {{Kind::reducing, 0}};
  for (int64_t shard = 0; shard < 4; ++shard) {
    expected.push_back({Kind::computing, 0, shard, 0, 10 * shard, 10});
    expected.push_back({Kind::reducing, 0});
  }
  for (const Work& last : {Work{}, Work{Kind::updating, 0}, Work{}}) expected.push_back(last);
  EXPECT_EQ(test.recorded, expected);
  test.recorded.clear();
  test.engine.evaluate(data::Split::val);
  EXPECT_EQ(test.recorded.at(1), (Work{Kind::evaluating, 1, 0, 0, 0, 10}));
  EXPECT_EQ(test.recorded.back(), Work{});
}

TEST(EngineWork, UnderAConditionHalfOfTheLanesRest) {
  RecordingEngine test(test_job("mlp", 4, 8));
  for (const Condition condition : {Condition::half_lanes, Condition::cores_busy, Condition::memory_busy}) {
    ASSERT_TRUE(test.engine.can_use(condition));
    EXPECT_TRUE(test.engine.use(condition));
    for (int i = 0; i < 10; ++i) test.engine.step(0.1, false);
    EXPECT_LE(*test.lanes.rbegin(), 1) << name_of(condition);
  }
  test.engine.use(Condition::usual);
  test.engine.end_conditions();
  while (test.lanes.size() < 4) test.engine.step(0.1, false);  // sooner or later each lane finds a shard
}

TEST(EngineWork, WithReadySamplesNoLaneWaits) {
  spec::Job job = test_job("mlp", 1, 4);
  job.data.prefetch_threads = 2;
  RecordingEngine test(job);
  test.data.pretend_on_disk();
  ASSERT_TRUE(test.engine.can_use(Condition::samples_ready));
  EXPECT_FALSE(test.engine.use(Condition::samples_ready)) << "nothing was requested yet";
  test.engine.step(0.1, false);
  EXPECT_TRUE(test.engine.use(Condition::samples_ready));
  const int64_t loaded = test.prefetcher.use().samples;
  EXPECT_GE(loaded, 2 * 40) << "the samples of the next step are loaded before it begins";
}

// A reducer that hands out two shards and then blocks until give_up, as a group does while it waits for other members'
// shards.
class Waiting final : public Reducer {
 public:
  void begin(int64_t, const std::vector<torch::Tensor>&, std::string, std::optional<Mark>, const Audit&,
             const Purpose&) override {}
  std::optional<ShardTask> next_shard() override {
    std::unique_lock lock(mutex_);
    if (next_ < 2) return ShardTask{ShardIndex(next_++)};
    changed_.wait(lock, [this] { return given_up_; });
    throw std::runtime_error("fenced");
  }
  void deliver(ShardIndex, std::optional<Contribution>) override {}
  void reduce() override {}
  Reduced reduced() override { return {}; }
  void give_up() override {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_ = 0;
  bool given_up_ = false;
};

TEST(EngineWork, NamesAFailedShardAndNoLaneWaitsForIt) {
  for (const int lanes : {1, 2, 4}) {
    Waiting reducer;
    RecordingEngine test(test_job("mlp", lanes, 4), &reducer);
    test.fails = true;
    try {
      test.engine.step(0.1, false);
      FAIL();
    } catch (const ShardFailed& error) {
      EXPECT_EQ(error.code, ErrorCode("TRAIN_SHARD_FAILED"));
      EXPECT_STREQ(error.what(), "step 0, shard 1 (samples 10 to 19 in the order of epoch 0): no such shard");
      EXPECT_EQ(error.hint, "try another");
    }
  }
}

}  // namespace
}  // namespace sinew::train
