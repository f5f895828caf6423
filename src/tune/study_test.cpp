#include <gtest/gtest.h>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

Suggestion at(double x) {
  return {{x}, "test", "", {}};
}

Study line_study(std::vector<Direction> directions = {Direction::minimize}) {
  return Study({read_space(R"([{"name":"x","type":"float","low":0,"high":1}])"), std::move(directions)});
}

TEST(Study, ATrialEndsOnce) {
  Study study = line_study();
  EXPECT_EQ(study.start(at(0.1)), 0);
  EXPECT_EQ(study.start(at(0.2)), 1);
  EXPECT_EQ(study.open(), (std::vector<int64_t>{0, 1}));
  study.tell(1, TrialState::complete, {3});
  study.tell(0, TrialState::failed);
  EXPECT_EQ(study.observed(), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(study.open().empty());
  EXPECT_EQ(code_of([&] { study.tell(1, TrialState::complete, {3}); }), "TUNE_TRIAL_ENDED");
  EXPECT_EQ(code_of([&] { study.tell(2, TrialState::complete, {3}); }), "TUNE_UNKNOWN_TRIAL");
  EXPECT_EQ(code_of([&] { study.tell(-1, TrialState::complete, {3}); }), "TUNE_UNKNOWN_TRIAL");
  EXPECT_EQ(code_of([&] { study.report(0, 1, 1); }), "TUNE_TRIAL_ENDED");
}

TEST(Study, AFailedTrialMayRunAgain) {
  Study study = line_study();
  for (const double x : {0.1, 0.2, 0.3}) study.start(at(x));
  study.tell(1, TrialState::failed);
  EXPECT_EQ(study.open(), (std::vector<int64_t>{0, 2}));
  study.retry(1);
  EXPECT_EQ(study.open(), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(study.observed().empty());
  study.report(1, 1, 0.5);
  study.tell(1, TrialState::complete, {0.5});
  EXPECT_EQ(code_of([&] { study.retry(1); }), "TUNE_TRIAL_ENDED");
  EXPECT_EQ(code_of([&] { study.retry(7); }), "TUNE_UNKNOWN_TRIAL");
}

TEST(Study, AnInvalidResultChangesNothing) {
  Study study = line_study({Direction::minimize, Direction::maximize});
  study.start(at(0.5));
  EXPECT_EQ(code_of([&] { study.tell(0, TrialState::complete, {3}); }), "TUNE_BAD_VALUES");
  EXPECT_EQ(code_of([&] { study.tell(0, TrialState::complete); }), "TUNE_BAD_VALUES");
  EXPECT_EQ(code_of([&] { study.tell(0, TrialState::failed, {1, 2}); }), "TUNE_BAD_VALUES");
  EXPECT_EQ(study.open().size(), 1u);
  study.tell(0, TrialState::complete, {3, 4});
  EXPECT_EQ(study.loss(study.trial(0), 0), 3);
  EXPECT_EQ(study.loss(study.trial(0), 1), -4);
}

TEST(Study, FailedAndNotANumberAreTheWorst) {
  Study study = line_study();
  for (int i = 0; i < 3; ++i) study.start(at(0.1 * i));
  study.tell(0, TrialState::failed);
  study.tell(1, TrialState::complete, {std::nan("")});
  study.tell(2, TrialState::pruned);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(study.loss(study.trial(i)), std::numeric_limits<double>::infinity());
}

TEST(Study, ReportsGrowInTheirSteps) {
  Study study = line_study({Direction::maximize});
  study.start(at(0.5));
  study.report(0, 1, 0.3);
  EXPECT_EQ(code_of([&] { study.report(0, 1, 0.4); }), "TUNE_BAD_STEP");
  study.report(0, 2, 0.4);
  EXPECT_EQ(study.loss(study.trial(0).reports.back()), -0.4);
  study.pause(0);
  EXPECT_EQ(code_of([&] { study.report(0, 3, 0.4); }), "TUNE_TRIAL_PAUSED");
  study.resume(0);
  study.report(0, 3, 0.4);
  EXPECT_EQ(study.trial(0).reports.size(), 3u);
}

TEST(Study, ViolationIsTheSumAboveZero) {
  Study study = line_study();
  study.start(at(0.5));
  study.tell(0, TrialState::complete, {1}, {-3, 0.5, 2});
  EXPECT_EQ(Study::violation(study.trial(0)), 2.5);
}

TEST(Study, AFailedTrialIsNotFeasible) {
  Study study = line_study();
  for (int i = 0; i < 4; ++i) study.start(at(0.2 * i));
  study.tell(0, TrialState::failed);
  study.tell(1, TrialState::complete, {std::nan("")}, {-1});
  study.tell(2, TrialState::pruned);
  for (const int64_t id : {0, 1}) EXPECT_EQ(Study::violation(study.trial(id)), std::numeric_limits<double>::infinity());
  for (const int64_t id : {2, 3}) EXPECT_EQ(Study::violation(study.trial(id)), 0);
}

TEST(Study, FirstPointsMustBeOfTheSpace) {
  EXPECT_EQ(code_of([&] {
              Study({finite_space(), {Direction::minimize}, 0, 0, {{2, 1, kInactive}}});
            }),
            "TUNE_BAD_POINT");
}

TEST(Study, RandomNumbersBelongToTrialAndPurpose) {
  Study study = line_study();
  const uint64_t first = study.random("a").bits64();
  EXPECT_EQ(study.random("a").bits64(), first);
  EXPECT_NE(study.random("b").bits64(), first);
  study.start(at(0.5));
  EXPECT_NE(study.random("a").bits64(), first);
}

}  // namespace
}  // namespace sinew::tune
