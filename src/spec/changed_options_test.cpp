// Tests of changed_options, which gives tables the options in which trainings differ.
#include <gtest/gtest.h>

#include "spec/spec.h"

namespace sinew::spec {
namespace {

TEST(ChangedOptions, AreThoseThatDifferFromDefaultsAndAFewFixedOnes) {
  Job job;
  const auto plain = changed_options(job);
  EXPECT_TRUE(plain.contains("optimizer.lr"));
  EXPECT_TRUE(plain.contains("model.name"));
  EXPECT_FALSE(plain.contains("optimizer.weight_decay"));
  job.name = "other";
  job.workers.max = 4;
  job.cluster.audit = 1;
  job.tune.trials = 7;
  EXPECT_EQ(changed_options(job), plain) << "where it runs and what it is called is not what it is";
  job.optimizer.name = "sgd";
  job.optimizer.momentum = 0.75;
  job.trainer.batch_size = 48;
  const auto changed = changed_options(job);
  EXPECT_EQ(changed.at("optimizer.momentum"), "0.75");
  EXPECT_EQ(changed.at("trainer.batch_size"), "48");
  EXPECT_EQ(changed.at("optimizer.name"), "sgd");
}

}  // namespace
}  // namespace sinew::spec
