// Tests that read_job(to_yaml(job)) returns the same job, for random valid jobs made from the option table.
#include <gtest/gtest.h>

#include "spec/options.h"
#include "spec/random_job.h"

namespace sinew::spec {
namespace {

TEST(RoundTrip, KeepsEveryRandomJob) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Job job = JobMaker(seed).make();
    const std::string yaml = to_yaml(job, {{"trainer.shards", "because: of\nthis # and that"}});
    const Reading reading = read_job(yaml, "job");
    ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]) << "\n" << yaml;
    ASSERT_EQ(reading.job, job) << yaml;
    ASSERT_EQ(to_yaml(reading.job), to_yaml(job));
  }
}

// The text holds every option that is set and has an effect.
TEST(RoundTrip, WritesEverySetOptionThatHasAnEffect) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Job job = JobMaker(seed).make();
    const std::string yaml = to_yaml(job);
    for (const Option& option : option_table()) {
      if (!is_set(option, job) || !has_effect(option, job)) continue;
      EXPECT_NE(yaml.find(option.leaf() + ": "), std::string::npos) << option.key << "\n" << yaml;
    }
  }
}

TEST(RoundTrip, WritesReasonsAsComments) {
  Job job;
  job.data.train.path = "x";
  job.trainer.shards = 8;
  const std::string yaml = to_yaml(job, {{"trainer.shards", "batch 64 in shards\nof 8"}});
  EXPECT_NE(yaml.find("  shards: 8  # batch 64 in shards of 8\n"), std::string::npos) << yaml;
}

// The names and contents of files, which reasons quote, may be any bytes.
TEST(RoundTrip, ReasonsOfAnyBytesKeepTheFileValid) {
  Job job;
  job.data.train.path = "x";
  job.trainer.shards = 8;
  const std::string bad[] = {"\x96", "a\xC3", "\xE2\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "é\xFF日\x1B\n"};
  for (const std::string& reason : bad) {
    const std::string yaml = to_yaml(job, {{"trainer.shards", reason}, {"model.hidden", reason}});
    const Reading reading = read_job(yaml, "job");
    EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]) << "\n" << yaml;
    EXPECT_EQ(reading.job, job);
  }
  EXPECT_NE(to_yaml(job, {{"trainer.shards", bad[5]}}).find("  shards: 8  # é?日  \n"), std::string::npos);
}

}  // namespace
}  // namespace sinew::spec
