#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/random.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

Outcome example() {
  Outcome outcome;
  outcome.status = "budget";
  outcome.exit_code = 3;
  outcome.job = "mnist";
  outcome.started_wall_seconds = 1763697600.25;
  outcome.seconds = 42.5;
  outcome.steps = 3;
  outcome.samples = 192;
  outcome.epochs = 0.5;
  outcome.digest = "0123";
  outcome.best = BestMetric{"val/accuracy", 0.8, 2};
  outcome.objective = ObjectiveResult{"val/accuracy >= 0.9", false, NAN};
  outcome.last = {{"train/loss", HUGE_VAL}, {"val/accuracy", 0.7}};
  outcome.folds = {{0, "trials/00000", "done", {{"val/loss", 0.5}}}, {1, "trials/00001", "failed", {}}};
  StageTimes& time = outcome.time.emplace(StageTimes{.lanes = 3});
  for (size_t i = 0; i < kStages; ++i) time.seconds[i] = 0.25 + static_cast<double>(i);
  outcome.resources = {.cores = 1.5,
                       .cpu_seconds = 2.25,
                       .queued_seconds = 3.5,
                       .throttled_seconds = 4.125,
                       .major_faults = 5,
                       .disk_read_bytes = 6,
                       .disk_written_bytes = 7,
                       .peak_memory_bytes = 8,
                       .memory_limit_bytes = 13,
                       .memory_stalled_seconds = 0.5,
                       .memory_stopped_seconds = 0.25,
                       .seconds = 4,
                       .network = {.sent_bytes = 16, .received_bytes = 17}};
  outcome.experiments = {{Condition::usual, 24, 0.5, {1, 1, 1}}, {Condition::half_lanes, 24, 0.75, {1.5, 1.25, 1.75}}};
  outcome.loading = {.threads = 2, .read_seconds = 1.5, .samples = 14, .read_bytes = 15};
  for (size_t i = 0; i < kLoadStages; ++i) outcome.loading->cpu_seconds[i] = 0.5 + static_cast<double>(i);
  outcome.shares = {1, 0.25};
  outcome.memory = {.program = 9, .data = 10, .parameters = 11, .optimizer = 12};
  outcome.model = {.layers = {{"conv1", 2, 1.5e9, 2.5e6, 18}, {"other", 3, 0, 19, 0}},
                   .flops_per_step = 1.5e9,
                   .gradient_bytes = 20,
                   .steps = 3,
                   .flops = 4.5e9};
  outcome.forecasts = {.metric = "val/loss",
                       .made = {{1, 3, 0.9, 0.5, 0.75, 0.125, 40, 50.5}, {2, 4, 0.8, 0.625, 0.75, 0.25, -1, -1}},
                       .best = 0.7,
                       .best_step = 2};
  outcome.cost = 1.25;
  outcome.kilowatt_hours = 0.5;
  outcome.error = "bad \"thing\"";
  outcome.hint = "try";
  outcome.earlier_status = "done";
  return outcome;
}

TEST(Outcome, reads_back_as_written) {
  const std::string text = outcome_json(example());
  const auto read = parse_outcome(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(outcome_json(*read), text);
  EXPECT_EQ(read->best->step, 2);
  EXPECT_EQ(read->cost, 1.25);
  EXPECT_EQ(read->kilowatt_hours, 0.5);
  EXPECT_EQ(read->time, example().time);
  EXPECT_EQ(read->resources, example().resources);
  EXPECT_EQ(read->memory, example().memory);
  EXPECT_EQ(read->experiments, example().experiments);
  EXPECT_EQ(read->loading, example().loading);
  EXPECT_EQ(read->shares, example().shares);
  EXPECT_EQ(read->model, example().model);
  EXPECT_EQ(read->last.at("train/loss"), HUGE_VAL);
  EXPECT_TRUE(std::isnan(read->objective->value));
  EXPECT_EQ(outcome_json(*parse_outcome(outcome_json(Outcome()))), outcome_json(Outcome()));
}

TEST(Outcome, has_rates_for_other_programs) {
  const auto json = nlohmann::json::parse(outcome_json(example()));
  EXPECT_EQ(json["resources"]["network_sent_bytes_per_second"], 4);
  EXPECT_EQ(json["resources"]["disk_written_bytes_per_second"], 2);
  Outcome short_run = example();
  short_run.resources->seconds = 0;
  EXPECT_EQ(nlohmann::json::parse(outcome_json(short_run))["resources"]["network_sent_bytes_per_second"], 0);
}

TEST(Outcome, accounts_of_a_run_that_trains_are_no_report) {
  Outcome so_far = example();
  so_far.status = kRunning;
  const std::string text = outcome_json(so_far);
  std::string why;
  EXPECT_FALSE(parse_outcome(text, &why));
  EXPECT_EQ(why, "\"status\" is none of done, failed, stopped, budget");
  const auto read = parse_accounts(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(outcome_json(*read), text);
  EXPECT_FALSE(parse_accounts(outcome_json(example()), &why));
  EXPECT_EQ(why, "\"status\" is none of running");
}

std::string why_not(const std::string& text) {
  std::string why;
  EXPECT_FALSE(parse_outcome(text, &why));
  return why;
}

TEST(Outcome, damage_is_named_and_never_crashes) {
  EXPECT_EQ(why_not("{}"), "\"status\" is none of done, failed, stopped, budget");
  EXPECT_EQ(why_not(""), "not a JSON object");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"time\":{\"forward\":\"long\"}}"), "\"forward\" is not a number");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"resources\":[]}"), "\"resources\" is not an object");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"attempt\":{},\"layers\":[1]}"), "\"layers\" is not a list of objects");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"attempt\":{\"steps\":\"x\"}}"), "\"steps\" is not a whole number");
  EXPECT_EQ(why_not(std::string(1 << 20, '[')), "not a JSON object");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"steps\":\"x\"}"), "\"steps\" is not a whole number");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"last\":[1]}"), "\"last\" is not an object");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"folds\":3}"), "\"folds\" is not a list of objects");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"folds\":[1]}"), "\"folds\" is not a list of objects");
  EXPECT_EQ(why_not("{\"status\":\"done\",\"folds\":[{\"metrics\":{\"a\":\"x\"}}]}"), "\"a\" is not a number");
  const std::string whole = outcome_json(example());
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({seed}));
    std::string text = whole;
    text[random.below(text.size())] = static_cast<char>(random.below(256));
    if (random.below(4) == 0) text.resize(random.below(text.size()));
    std::string why;
    if (const auto read = parse_outcome(text, &why)) {
      EXPECT_TRUE(parse_outcome(outcome_json(*read))) << text;
    } else {
      EXPECT_NE(why, "");
    }
  }
}

}  // namespace
}  // namespace sinew::rundir
