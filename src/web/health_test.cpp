// Tests what counts as a store that cannot be used.
#include "web/health.h"

#include <gtest/gtest.h>

namespace sinew::web {
namespace {

const store::Condition kGood{}, kSlow{"the request takes too long", false, true}, kGone{"the file was removed", false};

// Lets the time pass as the watching thread does.
void pass(Verdict& verdict, double& now, double seconds) {
  for (const double end = now + seconds; now < end; now += Verdict::kTickSeconds) verdict.tick(now);
}

TEST(Verdict, AFailedLookCountsAtOnceAndAGoodOneToo) {
  Verdict verdict;
  EXPECT_TRUE(verdict.condition().usable);
  verdict.found(kGone);
  EXPECT_FALSE(verdict.condition().usable);
  EXPECT_EQ(verdict.condition().problem, kGone.problem);
  verdict.found(kSlow);
  EXPECT_EQ(verdict.condition().problem, kGone.problem) << "it found out nothing";
  verdict.found(kGood);
  EXPECT_TRUE(verdict.condition().usable);
}

TEST(Verdict, ASlowLookIsNoFailureUnlessItLastsLong) {
  Verdict verdict;
  double now = 100;
  verdict.found(kGood);
  for (int looks = 0; looks < 5; ++looks) {
    pass(verdict, now, 1.7);
    verdict.found(kSlow);
    EXPECT_TRUE(verdict.condition().usable) << looks;
  }
  pass(verdict, now, 2);
  EXPECT_FALSE(verdict.condition().usable);
  EXPECT_EQ(verdict.condition().problem, "the store does not answer");
  verdict.found(kSlow);
  EXPECT_FALSE(verdict.condition().usable);
  verdict.found(kGood);
  EXPECT_TRUE(verdict.condition().usable);
  for (int looks = 0; looks < 20; ++looks) {
    pass(verdict, now, 8);
    verdict.found(kGood);
    EXPECT_TRUE(verdict.condition().usable) << looks;
  }
}

TEST(Verdict, ALookThatNeverEndsCounts) {
  Verdict verdict;
  double now = 100;
  pass(verdict, now, Verdict::kPatienceSeconds - 1);
  EXPECT_TRUE(verdict.condition().usable);
  pass(verdict, now, 2);
  EXPECT_FALSE(verdict.condition().usable);
}

// The process was suspended, or the machine slept. The store may have answered meanwhile, but this process did not see
// it.
TEST(Verdict, TheTimeInWhichThisProcessDidNotRunDoesNotCount) {
  Verdict verdict;
  double now = 100;
  for (int pauses = 0; pauses < 20; ++pauses) {
    now += 1000;
    verdict.tick(now);
  }
  EXPECT_TRUE(verdict.condition().usable);
}

}  // namespace
}  // namespace sinew::web
