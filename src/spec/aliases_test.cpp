// Tests that a second name of an option means the same as its own name, wherever a job file or an override uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/expect_problems.h"
#include "spec/options.h"

namespace sinew::spec {
namespace {

using testing::HasSubstr;

const std::string kJob =
    "data: {train: x.csv, format: csv, columns: {target: y}}\n"
    "tune:\n"
    "  search: {optimizer.lr: [1, 2]}\n";

Reading read(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return read_job(kJob + more, "job.yaml", overrides);
}

std::string pruner_of(const std::string& more, const std::vector<std::string>& overrides = {}) {
  const Reading reading = read(more, overrides);
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  return reading.job.tune.pruner;
}

TEST(Aliases, MeanTheOptionInTheFileAndInOverrides) {
  EXPECT_EQ(pruner_of("  stopper: median\n"), "median");
  EXPECT_EQ(pruner_of("", {"tune.stopper=median"}), "median");
  EXPECT_EQ(pruner_of("  pruner: none\n", {"tune.stopper=median"}), "median");
  EXPECT_EQ(pruner_of("  stopper: none\n", {"tune.pruner=median"}), "median");
  EXPECT_EQ(pruner_of("", {"tune={search: {optimizer.lr: [1, 2]}, stopper: median}"}), "median");
}

TEST(Aliases, ProblemsNameTheOptionAtThePlaceOfTheAlias) {
  const Reading wrong = read("  stopper: never\n");
  ASSERT_EQ(wrong.problems.size(), 1U);
  EXPECT_THAT(to_string(wrong.problems[0]), HasSubstr("job.yaml:4:12: tune.pruner"));
  const Reading undone = read("", {"tune.stopper=none", "tune.pruner=median"});
  ASSERT_EQ(undone.problems.size(), 1U);
  EXPECT_THAT(to_string(undone.problems[0]), HasSubstr("tune.stopper=none"));
}

TEST(Aliases, AreRefusedBesideTheOptionItself) {
  const Reading both = read("  pruner: none\n  stopper: none\n");
  ASSERT_EQ(both.problems.size(), 1U);
  EXPECT_THAT(to_string(both.problems[0]), HasSubstr("job.yaml:5:3: tune.stopper is another name of tune.pruner"));
}

TEST(Aliases, DifferFromAllKeysOfTheirSection) {
  for (const Option& option : option_table()) {
    if (option.alias.empty()) continue;
    for (const std::string& key : keys_below(option.section())) EXPECT_NE(key, option.alias);
  }
}

}  // namespace
}  // namespace sinew::spec
