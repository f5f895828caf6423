#include "supervise/chaos_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sinew::supervise {
namespace {

using Kind = ChaosEvent::Kind;

TEST(ChaosPlan, IsAFunctionOfTheSeed) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto plan = chaos_plan(seed, 3, 10, 5);
    EXPECT_EQ(plan, chaos_plan(seed, 3, 10, 5));
    std::string text;
    for (const auto& event : plan) text += to_string(event) + "\n";
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 50u);
}

TEST(ChaosPlan, AShorterPlanIsTheBeginningOfALongerOne) {
  const auto longer = chaos_plan(7, 3, 40, 2), shorter = chaos_plan(7, 3, 11, 2);
  EXPECT_EQ(shorter, std::vector<ChaosEvent>(longer.begin(), longer.begin() + 11));
}

TEST(ChaosPlan, EveryKindOccursAndAllAmountsAreInRange) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const int64_t workers : {1, 2, 3, 8}) {
      const auto plan = chaos_plan(seed, workers, 15, 4);
      ASSERT_EQ(plan.size(), 15u);
      for (size_t begin = 0; begin < plan.size(); begin += 5) {
        std::set<Kind> kinds;
        for (size_t i = begin; i < begin + 5; ++i) kinds.insert(plan[i].kind);
        EXPECT_EQ(kinds.size(), 5u);
      }
      double before = 0;
      int64_t now = workers;
      for (const auto& event : plan) {
        EXPECT_GE(event.at - before, 2);
        EXPECT_LE(event.at - before, 6);
        before = event.at;
        EXPECT_EQ(event.kind == Kind::pause_worker, event.seconds > 1.5);
        if (event.kind != Kind::scale) continue;
        EXPECT_NE(event.workers, now);
        EXPECT_GE(event.workers, 1);
        EXPECT_LE(event.workers, std::max<int64_t>(workers, 2) + 1);
        now = event.workers;
      }
    }
  }
}

TEST(ChaosPlan, AnEventIsDueAtItsTimeOrBeforeTheRunIsOver) {
  const auto plan = chaos_plan(3, 3, 4, 10);
  for (size_t i = 0; i < plan.size(); ++i) {
    EXPECT_FALSE(is_due(plan, i, plan[i].at - 0.01, 1, 500));
    EXPECT_TRUE(is_due(plan, i, plan[i].at, 1, 500));
    const auto step = static_cast<int64_t>(100 * (i + 1));
    EXPECT_FALSE(is_due(plan, i, 0, step - 1, 500));
    EXPECT_TRUE(is_due(plan, i, 0, step, 500));
  }
  EXPECT_FALSE(is_due(plan, plan.size(), 1e9, 500, 500)) << "all have happened";
}

std::string line(int step, const std::string& digest) {
  return "{\"step\":" + std::to_string(step) + ",\"digest\":\"" + digest + "\"}\n";
}

TEST(Ledgers, EqualLedgersCompareAsSame) {
  const std::string calm = line(1, "a") + line(2, "b");
  EXPECT_TRUE(compare_ledgers(calm, calm).same());
  EXPECT_TRUE(compare_ledgers(calm, calm + line(2, "b")).same()) << "said twice";
  EXPECT_TRUE(compare_ledgers(calm, calm + "{\"step\":3,\"dig").same()) << "a torn line says nothing";
  EXPECT_EQ(to_string(compare_ledgers(calm, calm)), "the same to the last bit: 2 of 2 steps have the same digest");
}

TEST(Ledgers, FindsTheLastStep) {
  EXPECT_EQ(last_step(line(1, "a") + line(12, "b") + line(9, "c")), 12);
  EXPECT_EQ(last_step("not json\n"), 0);
}

TEST(Ledgers, FindsEveryDifference) {
  const std::string calm = line(1, "a") + line(2, "b") + line(3, "c");
  const std::pair<std::string, std::string> cases[] = {
      {line(1, "a") + line(2, "x") + line(3, "c"), "1 differ, the first is step 2"},
      {line(1, "a") + line(3, "c"), "1 are missing"},
      {calm + line(4, "d"), "1 are too many"},
      {calm + line(2, "y"), "1 differ, the first is step 2"},
      {"", "3 are missing"},
  };
  for (const auto& [wild, words] : cases) {
    const auto verdict = compare_ledgers(calm, wild);
    EXPECT_FALSE(verdict.same()) << wild;
    EXPECT_NE(to_string(verdict).find(words), std::string::npos) << to_string(verdict);
  }
  EXPECT_FALSE(compare_ledgers("", "").same());
  EXPECT_FALSE(compare_ledgers("not json\n[1]\n{\"step\":\"1\",\"digest\":2}\n", "").same());
}

}  // namespace
}  // namespace sinew::supervise
