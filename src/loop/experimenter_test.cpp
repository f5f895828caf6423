#include "loop/experimenter.h"

#include <gtest/gtest.h>

#include <map>

#include "base/hand_clock.h"
#include "loop/number_trainer.h"

namespace sinew::loop {
namespace {

// Takes as long for a step as the present condition says.
class Conditions : public NumberTrainer {
 public:
  bool use(Condition condition) override {
    now = condition;
    ++used[condition];
    return condition != broken;
  }
  bool can_use(Condition condition) override { return condition != missing; }
  void end_conditions() override { ++ended; }
  Condition now = Condition::usual;
  std::optional<Condition> missing, broken;
  std::map<Condition, int64_t> used;
  int64_t ended = 0;
};

struct Paused : Accounts {
  void steps_begin() override {}
  void steps_end() override {}
  double waiting_share() override { return 0; }
  void add_to(rundir::Outcome&) override {}
  void pause() override { paused = true; }
  void go_on() override { paused = false; }
  bool paused = false;
};

class ExperimenterTest : public testing::Test {
 protected:
  // Makes steps until the experiment ends. Returns how many.
  int64_t make_steps(Experimenter& experimenter, int64_t computing = 1) {
    int64_t steps = 0;
    while (experimenter.runs() && steps < 10'000) {
      EXPECT_TRUE(experimenter.before_step(computing, 32));
      clock_.seconds = clock_.seconds + (trainer_.now == Condition::usual ? 0.1 : 0.2);
      ++steps;
      if (experimenter.after_step()) break;
    }
    return steps;
  }
  HandClock clock_;
  Conditions trainer_;
  Paused accounts_;
};

TEST_F(ExperimenterTest, MeasuresEachConditionAndEndsWithTheUsualOne) {
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  EXPECT_FALSE(experimenter.runs());
  experimenter.begin(4, 1, 32);
  EXPECT_TRUE(experimenter.runs());
  EXPECT_TRUE(accounts_.paused);
  EXPECT_EQ(make_steps(experimenter), 4 * 6 * static_cast<int64_t>(kConditions));
  EXPECT_FALSE(experimenter.runs());
  ASSERT_EQ(experimenter.results().size(), kConditions);
  for (const ConditionTime& found : experimenter.results()) {
    const bool same = found.condition == Condition::usual || found.condition == Condition::memory_busy;
    EXPECT_NEAR(found.ratio.expected, same ? 1 : 2, 1e-9) << name_of(found.condition);
  }
  EXPECT_EQ(trainer_.now, Condition::usual);
  EXPECT_EQ(trainer_.ended, 1);
  EXPECT_FALSE(accounts_.paused);
}

TEST_F(ExperimenterTest, LeavesOutWhatAWorkerThatIsAloneCannotHave) {
  trainer_.missing = Condition::half_lanes;
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  experimenter.begin(4, 1, 32);
  EXPECT_EQ(make_steps(experimenter), 4 * 6 * static_cast<int64_t>(kConditions - 1));
  EXPECT_EQ(trainer_.used[Condition::half_lanes], 0);
}

TEST_F(ExperimenterTest, MembersGoThroughTheSameConditionsWhateverTheyCanHave) {
  Experimenter able(false, trainer_, &accounts_, clock_);
  able.begin(4, 3, 32);
  const int64_t steps = make_steps(able, 3);
  EXPECT_EQ(trainer_.used[Condition::samples_ready], 0) << "the others would wait for the slowest loader";
  trainer_.missing = Condition::memory_busy;
  trainer_.used.clear();
  Experimenter unable(false, trainer_, &accounts_, clock_);
  unable.begin(4, 3, 32);
  EXPECT_EQ(make_steps(unable, 3), steps);
  EXPECT_EQ(trainer_.used[Condition::memory_busy], 0);
  for (const ConditionTime& found : unable.results()) EXPECT_NE(found.condition, Condition::memory_busy);
}

TEST_F(ExperimenterTest, AConditionThatDidNotHoldHasNoResult) {
  trainer_.broken = Condition::samples_ready;
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  experimenter.begin(4, 1, 32);
  make_steps(experimenter);
  EXPECT_EQ(experimenter.results().size(), kConditions - 1);
  for (const ConditionTime& found : experimenter.results()) EXPECT_NE(found.condition, Condition::samples_ready);
}

TEST_F(ExperimenterTest, EndsWithoutAResultIfOtherMembersCompute) {
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  experimenter.begin(4, 2, 32);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(experimenter.before_step(2, 32));
    EXPECT_FALSE(experimenter.after_step());
  }
  EXPECT_FALSE(experimenter.before_step(3, 32));
  EXPECT_FALSE(experimenter.runs());
  EXPECT_FALSE(experimenter.after_step());
  EXPECT_TRUE(experimenter.results().empty());
  EXPECT_EQ(trainer_.now, Condition::usual);
}

TEST_F(ExperimenterTest, EndsWithoutAResultIfStepsHaveAnotherSize) {
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  experimenter.begin(4, 1, 32);
  ASSERT_TRUE(experimenter.before_step(1, 32));
  EXPECT_FALSE(experimenter.after_step());
  EXPECT_FALSE(experimenter.before_step(1, 64));
  EXPECT_FALSE(experimenter.runs());
  EXPECT_FALSE(accounts_.paused);
}

TEST_F(ExperimenterTest, ARequestWaitsUntilThePaceIsKnown) {
  Experimenter experimenter(false, trainer_, &accounts_, clock_);
  Pace pace;
  EXPECT_FALSE(experimenter.due(pace)) << "nobody asked";
  experimenter.ask({Step(0), ControlEntry::Kind::experiment, 0, "why so slow", false, 7});
  for (int i = 0; i < 5; ++i) pace.add(10);
  EXPECT_FALSE(experimenter.due(pace));
  pace.add(10);
  const auto due = experimenter.due(pace);
  ASSERT_TRUE(due);
  EXPECT_EQ(due->value, 3) << "steps of 10 s are long enough to be measured one by one";
  EXPECT_EQ(due->request, 7);
  EXPECT_FALSE(experimenter.due(pace)) << "once";
}

TEST_F(ExperimenterTest, ARunMadeForAnExperimentAsksItself) {
  Experimenter experimenter(true, trainer_, &accounts_, clock_);
  Pace pace;
  for (int i = 0; i < 9; ++i) pace.add(0.01);
  ASSERT_TRUE(experimenter.due(pace));
  EXPECT_FALSE(experimenter.due(pace));
}

}  // namespace
}  // namespace sinew::loop
