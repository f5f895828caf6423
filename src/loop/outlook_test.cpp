#include "loop/outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sinew::loop {
namespace {

const forecast::Monitored kLoss{"val/loss", true, 0};

// The evaluations of a training of 1000 steps, one each 25 steps, until a step.
Outlook outlook_at(int64_t until, double (*curve)(double), const forecast::Monitored& monitored = kLoss) {
  Outlook outlook;
  for (int64_t step = 25; step <= until; step += 25) {
    const Ahead ahead{.last_step = 1000,
                      .evaluations = static_cast<double>((1000 - step) / 25),
                      .lowest_rate = 0.1,
                      .mean_rate = 0.1,
                      .seconds_low = 90,
                      .seconds_high = 110};
    outlook = look_ahead(outlook, monitored, {step, curve(static_cast<double>(step)), 0.1}, ahead);
  }
  return outlook;
}

double falls(double step) {
  return 0.5 + std::exp(-step / 200) + 0.002 * std::sin(step);
}
double turns(double step) {
  return 0.5 + std::exp(-step / 50) + step / 1000 + 0.002 * std::sin(step);
}

TEST(Outlook, ForecastsAreKeptOnceForEachQuarter) {
  const Outlook outlook = outlook_at(1000, falls);
  ASSERT_EQ(outlook.made.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(outlook.made[i].step, 250 * (static_cast<int64_t>(i) + 1));
  EXPECT_EQ(outlook.made[0].last_step, 1000);
  EXPECT_EQ(outlook.made[0].seconds_low, 90);
  for (const rundir::MetricForecast& one : outlook.made) {
    EXPECT_LE(one.low, *outlook.evaluations.best);
    EXPECT_GE(one.high, *outlook.evaluations.best);
    EXPECT_LE(one.high, one.best);
  }
  EXPECT_FALSE(outlook.newest) << "nothing is to come";
  const auto kept = forecasts_of(outlook);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->metric, "val/loss");
  EXPECT_EQ(kept->made, outlook.made);
  EXPECT_EQ(kept->best, outlook.evaluations.best);
  EXPECT_FALSE(forecasts_of(outlook_at(50, falls))) << "two evaluations promise nothing";
}

TEST(Outlook, AForecastIsShownOnlyIfItTellsSomething) {
  Outlook outlook = outlook_at(500, falls);
  EXPECT_TRUE(forecast_to_show(outlook));
  const double reached = outlook.evaluations.points.front().value - *outlook.evaluations.best;
  outlook.newest->low = outlook.newest->high - 1.1 * reached;
  EXPECT_FALSE(forecast_to_show(outlook));
  EXPECT_FALSE(forecast_to_show({}));
}

TEST(Outlook, TellsOnceThatNothingBetterComes) {
  EXPECT_EQ(none_better_text(outlook_at(500, falls), "runs/a", true), "");
  Outlook outlook = outlook_at(700, turns);
  const std::string text = none_better_text(outlook, "runs/a b", true);
  EXPECT_THAT(text, testing::StartsWith("90 % likely that no better val/loss comes than 0.69"));
  EXPECT_THAT(text, testing::HasSubstr("sinew stop 'runs/a b'; checkpoints/best has the best state. "));
  EXPECT_THAT(none_better_text(outlook, "a", false), testing::HasSubstr("sinew stop a. "));
  EXPECT_THAT(text, testing::HasSubstr("early_stopping.patience="));
  outlook.told = true;
  EXPECT_EQ(none_better_text(outlook, "runs/a", true), "");
}

TEST(Outlook, AnotherMetricBeginsAnew) {
  Outlook outlook = outlook_at(500, falls);
  outlook.short_budget = "budget.time of 5s";
  outlook.told = true;
  outlook = look_ahead(outlook, {"val/accuracy", false, 0}, {525, 0.5, 0.1}, {.last_step = 1000, .evaluations = 19});
  EXPECT_EQ(outlook.metric, "val/accuracy");
  EXPECT_EQ(outlook.evaluations.count, 1);
  EXPECT_TRUE(outlook.made.empty());
  EXPECT_FALSE(outlook.told);
  EXPECT_EQ(outlook.short_budget, "budget.time of 5s");
}

TEST(Outlook, IsSavedWithTheState) {
  State state, read;
  StateFacts facts;
  state.outlook = outlook_at(600, falls);
  state.outlook.told = true;
  state.outlook.short_budget = "budget.cost of 5";
  const std::string digested = decisions_text(state);
  read_document(nlohmann::json::parse(state_document(state, facts).dump()), read, facts);
  EXPECT_EQ(read.outlook.metric, state.outlook.metric);
  EXPECT_EQ(read.outlook.evaluations, state.outlook.evaluations);
  EXPECT_EQ(read.outlook.made, state.outlook.made);
  EXPECT_TRUE(read.outlook.told);
  EXPECT_EQ(read.outlook.short_budget, "budget.cost of 5");
  state.outlook = {};
  EXPECT_EQ(decisions_text(state), digested) << "a forecast decides nothing";
  read_document(nlohmann::json::parse(state_document(state, facts).dump()), read, facts);
  EXPECT_EQ(read.outlook.metric, "") << "a checkpoint of an older version has no outlook";
}

}  // namespace
}  // namespace sinew::loop
