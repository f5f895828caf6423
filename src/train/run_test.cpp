// Tests whole runs whose durations are given in seconds, with a simulated clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "train/small_run.h"

namespace sinew::train {
namespace {

class TimedRun : public SmallRun {};

// tolerance in seconds: TickingClock advances at each call, so the calls between two steps, or before the run begins,
// take up to this long
constexpr double kSlack = 0.3;

TEST_F(TimedRun, LogsAtIntervalsInSeconds) {
  job_.budget.seconds = 20;
  job_.logging.interval = {2, spec::Duration::Unit::seconds};
  TickingClock clock;
  EXPECT_EQ(run_for(clock).exit_code, kBudget);
  std::vector<double> times;
  for (const auto& line : lines_of("metrics.jsonl")) {
    if (line.contains("train/loss")) times.push_back(line.at("time"));
  }
  ASSERT_GE(times.size(), 8U);
  for (size_t i = 1; i + 1 < times.size(); ++i) EXPECT_NEAR(times[i] - times[i - 1], 2, kSlack) << i;
}

TEST_F(TimedRun, ABudgetCountsAllAttemptsOfTheRun) {
  job_.budget.seconds = 10;
  TickingClock first(6.0), second;
  EXPECT_EQ(run_for(first).exit_code, kResumable);
  EXPECT_NEAR(first.seconds(), 6, 2 * kSlack);
  EXPECT_EQ(run_for(second, true).exit_code, kBudget);
  EXPECT_NEAR(second.seconds(), 4, 3 * kSlack);
}

// What the only member of a group was asked for.
class AskedRun : public SmallRun {
 protected:
  AskedRun() {
    job_.trainer.max_duration = {800, spec::Duration::Unit::steps};
    job_.trainer.lanes = 2;
    ledger_ = true;
  }
  void ask(std::vector<ControlEntry> requests) {
    join_ = [requests](const Identity&) { return std::make_unique<Alone>(requests); };
  }
  std::vector<std::string> events(const std::string& name) const {
    std::vector<std::string> texts;
    for (const auto& line : lines_of("log.jsonl")) {
      if (line.at("event") == name) texts.push_back(line.at("text"));
    }
    return texts;
  }
  nlohmann::json report() const { return nlohmann::json::parse(std::ifstream(run_directory_ + "/report.json")); }
};

TEST_F(AskedRun, AnExperimentChangesNoBitAndLeavesWhatItFound) {
  const RunResult calm = run_in("calm");
  EXPECT_FALSE(report().contains("experiments"));
  const auto ledger = lines_of("digests.jsonl");
  ask({{Step(0), ControlEntry::Kind::experiment, 0, "", false, 1}});
  const RunResult asked = run_in("asked");
  EXPECT_EQ(asked.digest, calm.digest);
  EXPECT_EQ(lines_of("digests.jsonl"), ledger);
  const auto found = report().at("experiments");
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0].at("condition"), "usual");
  EXPECT_EQ(found[1].at("condition"), "half_lanes");
  for (const auto& one : found) {
    EXPECT_GT(one.at("steps"), 0);
    EXPECT_GT(one.at("step_seconds"), 0);
    EXPECT_LE(one.at("ratio_low"), one.at("ratio"));
    EXPECT_LE(one.at("ratio"), one.at("ratio_high"));
  }
  EXPECT_THAT(events("experiment"), testing::ElementsAre(testing::HasSubstr("on half of the lanes, a step took")));
}

TEST_F(AskedRun, SavesAtTheIntervalThatItWasAskedFor) {
  job_.checkpoint.interval = "150st";
  job_.checkpoint.keep = 1000;
  ask({{Step(0), ControlEntry::Kind::checkpoint_steps, 100, "", false, 1},
       {Step(0), ControlEntry::Kind::loader_threads, 3, "", false, 2}});
  run_in("asked");
  std::set<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(run_directory_ + "/checkpoints"))
    saved.insert(entry.path().filename().string());
  EXPECT_THAT(saved, testing::Contains(testing::HasSubstr("100")));
  EXPECT_THAT(saved, testing::Not(testing::Contains(testing::HasSubstr("150"))));
  EXPECT_THAT(events("control"), testing::ElementsAre("step 1: checkpoint.interval 100 steps: a user's request",
                                                      "step 1: data.prefetch.threads 3: a user's request"));
}

TEST_F(TimedRun, ADurationInSecondsCountsAllAttemptsAndEndsWithSuccess) {
  job_.trainer.max_duration = {10, spec::Duration::Unit::seconds};
  TickingClock first(6.0), second;
  EXPECT_EQ(run_for(first).exit_code, kResumable);
  EXPECT_EQ(run_for(second, true).exit_code, 0);
  EXPECT_NEAR(second.seconds(), 4, 3 * kSlack);
  std::ifstream report(folder_ + "/report.json");
  EXPECT_EQ(nlohmann::json::parse(report).at("status"), "done");
}

TEST_F(TimedRun, EvaluatesAndSavesAtIntervalsInSeconds) {
  job_.trainer.max_duration = {11, spec::Duration::Unit::seconds};
  job_.data.split_val = 0.25;
  job_.trainer.eval_interval = {3, spec::Duration::Unit::seconds};
  job_.checkpoint.interval = "4s";
  job_.checkpoint.keep = 1000;
  TickingClock clock;
  EXPECT_EQ(run_for(clock).exit_code, kDone);
  int evaluations = 0;
  for (const auto& line : lines_of("metrics.jsonl")) evaluations += line.contains("val/loss") ? 1 : 0;
  EXPECT_THAT(evaluations, testing::AllOf(testing::Ge(3), testing::Le(4)));
  int saved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/checkpoints"))
    saved += entry.is_directory() && !entry.is_symlink() ? 1 : 0;
  for (const auto& line : lines_of("log.jsonl")) saved += line.value("event", "") == "checkpoint_skipped" ? 1 : 0;
  // Saves are due at 4 and 8 seconds and at the end. The test's clock advances at each call, so perhaps the real disk
  // cannot keep up. A save that is skipped for that reason counts as a save here.
  EXPECT_GE(saved, 3);
}

TEST_F(TimedRun, APassWithoutItsShortLastBatchIsAnEpoch) {
  job_.trainer.batch_size = 24;  // of 64 samples
  job_.trainer.drop_last = true;
  job_.trainer.max_duration = {3, spec::Duration::Unit::epochs};
  EXPECT_EQ(run_in("dropping").exit_code, kDone);
  std::ifstream report(folder_ + "/dropping/report.json");
  const auto outcome = nlohmann::json::parse(report);
  EXPECT_EQ(outcome.at("steps"), 6);
  EXPECT_EQ(outcome.at("epochs"), 3);
}

TEST_F(TimedRun, AGrowingBatchSizeIsTheSameAfterAResume) {
  job_.trainer.max_duration = {5, spec::Duration::Unit::epochs};
  job_.trainer.batch_size_ramp = {4, 8};
  job_.trainer.batch_size_ramp_interval = {5, spec::Duration::Unit::steps};
  TickingClock whole;
  const RunResult calm = run_for(whole);
  TickingClock half(whole.seconds() / 2), rest;
  // 5 epochs of 64 samples: 5 steps of 4 samples, 5 of 8, then 260 samples in steps of 16 or fewer.
  EXPECT_EQ(calm.step.value, 5 + 5 + 17);
  std::filesystem::remove_all(folder_ + "/checkpoints");
  std::filesystem::remove(folder_ + "/resolved.yaml");  // so that the directory holds no run
  EXPECT_EQ(run_for(half).exit_code, kResumable);
  const RunResult resumed = run_for(rest, true);
  EXPECT_EQ(resumed.step, calm.step);
  EXPECT_EQ(resumed.digest, calm.digest);
  job_.trainer.batch_size_ramp.clear();
  std::filesystem::remove_all(folder_ + "/checkpoints");
  std::filesystem::remove(folder_ + "/resolved.yaml");  // so that the directory holds no run
  TickingClock other;
  EXPECT_NE(run_for(other).digest, calm.digest);
}

class DivergingRun : public SmallRun {};

// The step is computed, then computed again to be sure, and once more to find the cause.
TEST_F(DivergingRun, SearchesForTheCauseOnce) {
  job_.optimizer.lr = 1e30;
  std::mutex mutex;
  std::map<int64_t, std::map<int64_t, int>> times;  // by step and shard
  on_work_ = [&](int, const Work& work) {
    const std::lock_guard lock(mutex);
    if (work.kind == Work::Kind::computing) ++times[work.step][work.shard];
  };
  TickingClock clock;
  std::string what;
  try {
    run_for(clock);
  } catch (const Diverged& diverged) {
    what = diverged.what();
  }
  EXPECT_THAT(what, testing::HasSubstr("first not finite at"));
  ASSERT_FALSE(times.empty());
  for (const auto& [step, shards] : times) {
    for (const auto& [shard, count] : shards)
      EXPECT_EQ(count, step == times.rbegin()->first ? 3 : 1) << step << ' ' << shard;
  }
}

}  // namespace
}  // namespace sinew::train
