// How many trainings run side by side beside whatever else the machine does.
#include "study/slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinew::study {
namespace {

// A machine whose cores others use in part; what the study uses goes on beside them.
class Machine {
 public:
  explicit Machine(PlacesOptions options) : places_(options), every_(options.every) {}
  // Some looks later; what was said on the way.
  std::vector<std::string> look(int times, double others, double own) {
    std::vector<std::string> said;
    for (int i = 0; i < times; ++i) {
      if (places_.due(now_)) {
        if (auto words = places_.look(now_, used_)) said.push_back(*words);
      }
      now_ += every_;
      used_.busy += (others + own) * every_;
      used_.own += own * every_;
    }
    return said;
  }
  int64_t now() const { return places_.now(); }

 private:
  StudyPlaces places_;
  double every_, now_ = 100;
  CpuTimes used_{5000, 70};
};

PlacesOptions eight_cores() {
  return {.most = 8, .follows = true, .cores = 8, .allowed = 8, .each = 1};
}

TEST(StudyPlaces, GivesWayToOthersAndComesBack) {
  Machine machine(eight_cores());
  EXPECT_TRUE(machine.look(10, 0.3, 7.7).empty()) << "a little is always going on";
  EXPECT_EQ(machine.now(), 8);
  EXPECT_THAT(machine.look(10, 5, 3),
              testing::ElementsAre("3 side by side from now on: other programs use 5 of 8 cores"));
  EXPECT_EQ(machine.now(), 3);
  EXPECT_THAT(machine.look(10, 7.6, 0.4),
              testing::ElementsAre(testing::StartsWith("1 training at a time from now on")));
  EXPECT_EQ(machine.now(), 1) << "one always goes on";
  EXPECT_THAT(machine.look(10, 0, 1), testing::ElementsAre("8 side by side from now on: there are cores free again"));
  EXPECT_EQ(machine.now(), 8);
}

TEST(StudyPlaces, AShortBurstChangesNothing) {
  Machine machine(eight_cores());
  machine.look(5, 0, 8);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(machine.look(2, 8, 1).empty());
    EXPECT_TRUE(machine.look(1, 0, 8).empty());
  }
  EXPECT_EQ(machine.now(), 8);
}

TEST(StudyPlaces, TheLeastChangeThatAllLooksAgreeOn) {
  Machine machine(eight_cores());
  machine.look(4, 0, 8);
  machine.look(1, 6, 2), machine.look(1, 2, 6), machine.look(2, 4, 4);
  EXPECT_EQ(machine.now(), 6);
}

TEST(StudyPlaces, ATrainingOfSeveralCoresAndALimitOfFewer) {
  PlacesOptions options = eight_cores();
  options.each = 4;
  options.most = 2;
  Machine two(options);
  two.look(9, 1.5, 6);
  EXPECT_EQ(two.now(), 2) << "6.5 cores are nearly 8";
  two.look(9, 3, 5);
  EXPECT_EQ(two.now(), 1);

  options = eight_cores();
  options.allowed = options.most = 2;  // by a cgroup, on a machine that others share
  Machine limited(options);
  EXPECT_TRUE(limited.look(9, 5.5, 2).empty());
  EXPECT_EQ(limited.now(), 2);
}

TEST(StudyPlaces, ANumberThatWasGivenStays) {
  PlacesOptions options = eight_cores();
  options.follows = false;
  Machine machine(options);
  EXPECT_TRUE(machine.look(20, 8, 0).empty());
  EXPECT_EQ(machine.now(), 8);
}

}  // namespace
}  // namespace sinew::study
