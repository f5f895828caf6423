// Tests of comparing the options of two jobs.
#include <gtest/gtest.h>

#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

spec::Job some_job() {
  spec::Job job;
  job.name = "a";
  job.data.format = "csv";
  job.data.train.path = "train.csv";
  job.data.columns.target = "y";
  job.model.name = "mlp";
  job.trainer.shards = 8;
  job.trainer.precision = "fp32";
  return job;
}

std::vector<OptionChange> changes(const std::function<void(spec::Job&)>& change) {
  spec::Job other = some_job();
  change(other);
  return job_changes(spec::to_yaml(some_job()), spec::to_yaml(other));
}

TEST(JobChanges, NameEachOptionThatMayChangeTheResult) {
  const std::function<void(spec::Job&)> cases[] = {
      [](spec::Job& job) { job.optimizer.lr *= 1.1; },   [](spec::Job& job) { job.model.dropout = 0.5; },
      [](spec::Job& job) { job.trainer.shards = 4; },    [](spec::Job& job) { job.trainer.precision = "bf16"; },
      [](spec::Job& job) { job.trainer.seed += 1; },     [](spec::Job& job) { job.trainer.batch_size += 1; },
      [](spec::Job& job) { job.model.hidden = {3}; },    [](spec::Job& job) { job.checkpoint.monitor = "train/loss"; },
      [](spec::Job& job) { job.data.split_val = 0.25; }, [](spec::Job& job) { job.scheduler.name = "cosine"; },
  };
  for (const auto& change : cases) {
    const auto found = changes(change);
    ASSERT_FALSE(found.empty());
    EXPECT_TRUE(changes_result(found)) << to_string(found);
  }
  const auto precision = changes([](spec::Job& job) { job.trainer.precision = "bf16"; });
  EXPECT_EQ(to_string(precision), "trainer.precision was fp32, is bf16");
}

TEST(JobChanges, TellOptionsWithoutEffectFromTheOthers) {
  const auto found = changes([](spec::Job& job) {
    job.data.train.path = "moved/train.csv";
    job.checkpoint.keep += 3;
    job.checkpoint.interval = "10st";
    job.trainer.lanes = 7;
    job.budget.training = "5ep";
    job.logging.tensorboard = !job.logging.tensorboard;
  });
  EXPECT_GE(found.size(), 6U) << to_string(found);
  EXPECT_FALSE(changes_result(found)) << to_string(found);
  const auto both = changes([](spec::Job& job) {
    job.checkpoint.keep += 3;
    job.trainer.seed += 1;
  });
  EXPECT_EQ(both.at(0).key, "trainer.seed") << "those of the result come first";
}

TEST(JobChanges, CommentsAndDefaultsDoNotCount) {
  const std::string yaml = spec::to_yaml(some_job());
  EXPECT_TRUE(job_changes(yaml, spec::to_yaml(some_job(), {{"trainer.shards", "a reason"}})).empty());
  std::string older = yaml;  // an older version did not know this option
  const size_t at = older.find("  weight_decay:");
  ASSERT_NE(at, std::string::npos);
  older.erase(at, older.find('\n', at) - at + 1);
  EXPECT_TRUE(job_changes(older, yaml).empty()) << to_string(job_changes(older, yaml));
}

// One changed digit anywhere in the file is found, or leaves the same value.
TEST(JobChanges, AChangedDigitIsFound) {
  const std::string yaml = spec::to_yaml(some_job());
  int found = 0;
  for (size_t i = 0; i < yaml.size(); ++i) {
    if (yaml[i] < '0' || yaml[i] > '9') continue;
    std::string other = yaml;
    other[i] = other[i] == '9' ? '8' : static_cast<char>(other[i] + 1);
    if (spec::read_job(other, "x").problems.empty() && spec::to_yaml(spec::read_job(other, "x").job) == yaml) continue;
    EXPECT_FALSE(job_changes(yaml, other).empty()) << other.substr(i > 30 ? i - 30 : 0, 40);
    ++found;
  }
  EXPECT_GT(found, 20);
}

TEST(EnvironmentChanges, NameWhatDecidesBits) {
  const std::string before = R"({"cpu_capability": "AVX512", "build_libm": "aa", "cores": 2, "gone": "x"})";
  EXPECT_EQ(environment_changes(before, before), "");
  EXPECT_EQ(
      environment_changes(before, R"({"cpu_capability":"AVX512","build_libm":"aa","cores":8,"gone":"x","new":""})"),
      "");
  EXPECT_EQ(environment_changes(before, R"({"cpu_capability": "DEFAULT", "build_libm": "aa", "cores": 2, "new": 3})"),
            "cpu_capability was AVX512 and is DEFAULT; gone was x and is absent; new was absent and is 3");
  EXPECT_EQ(environment_changes("", before), "");
  EXPECT_EQ(environment_changes(before, "[1]"), "");
}

}  // namespace
}  // namespace sinew::rundir
