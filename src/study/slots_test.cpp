// Tests how many trials run side by side while other programs use the machine.
#include "study/slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinew::study {
namespace {

// A machine on which other programs use some cores and the study uses others.
class Machine {
 public:
  explicit Machine(SlotOptions options) : slots_(options), every_(options.every) {}
  // Makes some observations, and returns the sentences about changes.
  std::vector<std::string> observe(int times, double others, double own) {
    std::vector<std::string> changes;
    for (int i = 0; i < times; ++i) {
      if (slots_.due(now_)) {
        if (auto sentence = slots_.observe(now_, used_)) changes.push_back(*sentence);
      }
      now_ += every_;
      used_.busy += (others + own) * every_;
      used_.own += own * every_;
    }
    return changes;
  }
  int64_t now() const { return slots_.now(); }

 private:
  TrialSlots slots_;
  double every_, now_ = 100;
  CpuTimes used_{5000, 70};
};

SlotOptions eight_cores() {
  return {.most = 8, .adaptive = true, .cores = 8, .allowed = 8, .each = 1};
}

TEST(TrialSlots, DecreaseForOtherProgramsAndIncreaseAgain) {
  Machine machine(eight_cores());
  EXPECT_TRUE(machine.observe(10, 0.3, 7.7).empty()) << "some background work is always there";
  EXPECT_EQ(machine.now(), 8);
  EXPECT_THAT(machine.observe(10, 5, 3),
              testing::ElementsAre("from now on 3 trials run at a time: other programs use 5 of 8 cores"));
  EXPECT_EQ(machine.now(), 3);
  EXPECT_THAT(machine.observe(10, 7.6, 0.4),
              testing::ElementsAre(testing::StartsWith("from now on 1 trial runs at a time")));
  EXPECT_EQ(machine.now(), 1) << "one trial always runs";
  EXPECT_THAT(machine.observe(10, 0, 1),
              testing::ElementsAre("from now on 8 trials run at a time: cores are free again"));
  EXPECT_EQ(machine.now(), 8);
}

TEST(TrialSlots, AShortBurstChangesNothing) {
  Machine machine(eight_cores());
  machine.observe(5, 0, 8);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(machine.observe(2, 8, 1).empty());
    EXPECT_TRUE(machine.observe(1, 0, 8).empty());
  }
  EXPECT_EQ(machine.now(), 8);
}

TEST(TrialSlots, ChangeByTheLeastAmountOnWhichObservationsAgree) {
  Machine machine(eight_cores());
  machine.observe(4, 0, 8);
  machine.observe(1, 6, 2), machine.observe(1, 2, 6), machine.observe(2, 4, 4);
  EXPECT_EQ(machine.now(), 6);
}

TEST(TrialSlots, RespectTrialsOfSeveralCoresAndCpuLimits) {
  SlotOptions options = eight_cores();
  options.each = 4;
  options.most = 2;
  Machine two(options);
  two.observe(9, 1.5, 6);
  EXPECT_EQ(two.now(), 2) << "6.5 cores are nearly 8";
  two.observe(9, 3, 5);
  EXPECT_EQ(two.now(), 1);

  options = eight_cores();
  options.allowed = options.most = 2;  // a cgroup limits the study on a machine that other programs use too
  Machine limited(options);
  EXPECT_TRUE(limited.observe(9, 5.5, 2).empty());
  EXPECT_EQ(limited.now(), 2);
}

TEST(TrialSlots, AGivenNumberStays) {
  SlotOptions options = eight_cores();
  options.adaptive = false;
  Machine machine(options);
  EXPECT_TRUE(machine.observe(20, 8, 0).empty());
  EXPECT_EQ(machine.now(), 8);
}

}  // namespace
}  // namespace sinew::study
