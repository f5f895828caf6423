// Tests of tune.search: read_job accepts valid searches, and reports problems at the right position.
#include "spec/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

MATCHER_P(IsProblem, expected, "") {
  return is_problem(arg, expected);
}

const std::string kJob = "data: {train: x.csv, format: csv, columns: {target: y}}\n";

Reading read(const std::string& search) {
  return read_job(kJob + "tune:\n  search:\n" + search, "job.yaml");
}

std::string first_problem(const std::string& search) {
  const Reading reading = read(search);
  return reading.problems.empty() ? "" : to_string(reading.problems[0]);
}

TEST(Search, ReadsRangesListsAndConditions) {
  const Reading reading = read(
      "    optimizer.name: [sgd, adamw]\n"
      "    optimizer.lr: {low: 1e-4, high: 0.1, log: true}\n"
      "    optimizer.momentum: {low: 0, high: 0.9, step: 0.1, if: {optimizer.name: sgd}}\n"
      "    trainer.batch_size: {choices: [32, 64, 128], ordered: true}\n"
      "    model.hidden: [[64], [128, 64]]\n"
      "    optimizer.weight_decay: {low: 0, high: 0.1}\n");
  ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  const auto& search = reading.job.tune.search;
  ASSERT_EQ(search.size(), 6U);
  EXPECT_THAT(search[0].choices, ElementsAre("sgd", "adamw"));
  EXPECT_EQ(search[1].kind, SearchParameter::Kind::real);
  EXPECT_TRUE(search[1].log);
  EXPECT_EQ(search[1].low, 1e-4);
  ASSERT_EQ(search[2].only_if.size(), 1U);
  EXPECT_THAT(search[2].only_if[0].values, ElementsAre("sgd"));
  EXPECT_TRUE(search[3].ordered);
  EXPECT_THAT(search[4].choices, ElementsAre("[64]", "[128, 64]"));
}

// Each parameter depends on all parameters before it, so there are 2^39 chains of conditions.
TEST(Search, ConditionsOnConditionsAreMetOnce) {
  std::string yaml = "command: [run, '{params.p0}']\nparams: {";
  for (int i = 0; i < 40; ++i) yaml += (i == 0 ? "p" : ", p") + std::to_string(i) + ": 1";
  yaml += "}\ntune:\n  search:\n";
  for (int i = 0; i < 40; ++i) {
    yaml += "    params.p" + std::to_string(i) + ": {choices: [1, 2]";
    for (int j = 0; j < i; ++j)
      yaml += (j == 0 ? ", if: {params.p" : ", params.p") + std::to_string(j) + ": 1" + (j + 1 == i ? "}" : "");
    yaml += "}\n";
  }
  const Reading reading = read_job(yaml, "job.yaml");
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  const auto probes = probes_of(reading.job, 1000);
  ASSERT_EQ(probes.size(), 80U);
  EXPECT_EQ(probes.back().overrides.size(), 40U);
  EXPECT_EQ(probes.back().overrides.front(), "params.p0=1");
  EXPECT_EQ(probes.back().overrides.back(), "params.p39=2");
  EXPECT_EQ(probes_of(reading.job, 7).size(), 7U);
}

// Each case names the line, the column and the code of the problem.
TEST(Search, RefusesInvalidParameters) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"    optimizer.lrr: [1]\n", "job.yaml:4:5: SPEC_UNKNOWN_KEY | 'optimizer.lrr' | tune.search | 'optimizer.lr'"},
      {"    tune.trials: [1, 2]\n", "job.yaml:4:5: SPEC_NOT_SEARCHABLE | 'tune.trials'"},
      {"    optimizer.lr: 5\n", "job.yaml:4:19: SPEC_BAD_SEARCH | optimizer.lr | number 5"},
      {"    optimizer.lr: []\n", "job.yaml:4:19: SPEC_BAD_SEARCH | optimizer.lr"},
      {"    optimizer.lr: {low: 0.1}\n", "job.yaml:4:19: SPEC_BAD_SEARCH | optimizer.lr has no high"},
      {"    optimizer.lr: {low: 0.1, high: 0.1}\n", "job.yaml:4:19: SPEC_BAD_RANGE | low is 0.1"},
      {"    optimizer.lr: {low: 0.1, high: -1}\n", "job.yaml:4:36: SPEC_OUT_OF_RANGE | optimizer.lr is -1"},
      {"    optimizer.lr: {low: 0.1, hihg: 1}\n", "job.yaml:4:30: SPEC_UNKNOWN_KEY | 'hihg' | 'high'"},
      {"    optimizer.weight_decay: {low: 0, high: 1, log: true}\n", "job.yaml:4:29: SPEC_BAD_RANGE | log | at 0"},
      {"    optimizer.lr: {low: 0.1, high: 1, log: 3}\n", "job.yaml:4:44: SPEC_WRONG_TYPE | log | number 3"},
      {"    optimizer.lr: {low: 0.1, high: 1, step: 2}\n", "job.yaml:4:19: SPEC_BAD_RANGE | step"},
      {"    trainer.batch_size: {low: 1, high: 9, step: 0.5}\n", "job.yaml:4:49: SPEC_WRONG_TYPE | step | whole"},
      {"    model.activation: {low: 1, high: 2}\n",
       "job.yaml:4:23: SPEC_BAD_SEARCH | model.activation | one of auto, relu"},
      {"    model.activation: [relu, gleu]\n", "job.yaml:4:30: SPEC_BAD_CHOICE | 'gleu' | 'gelu'"},
      {"    model.activation: [relu, relu]\n", "job.yaml:4:30: SPEC_BAD_SEARCH | relu is listed twice"},
      {"    model.activation: {choices: [relu], low: 1}\n", "job.yaml:4:46: SPEC_BAD_SEARCH | low"},
      {"    optimizer.momentum: {low: 0, high: 0.9, if: {optimizer.name: sgd}}\n",
       "job.yaml:4:50: SPEC_BAD_CONDITION | 'optimizer.name' | optimizer.momentum"},
      {"    optimizer.name: [sgd, adam]\n    optimizer.momentum: {low: 0, high: 0.9, if: {optimizer.name: adamw}}\n",
       "job.yaml:5:66: SPEC_BAD_CONDITION | adamw | optimizer.name | sgd, adam"},
      {"    optimizer.momentum: {low: 0, high: 0.9}\n",
       "job.yaml:4:5: SPEC_BAD_TRIAL | with optimizer.momentum=0 | optimizer.name: adamw"},
      {"    workers.min: [1, 2]\n", "job.yaml:4:5: SPEC_BAD_TRIAL | with workers.min=2 | workers.max"},
  };
  for (const auto& [text, problem] : cases)
    EXPECT_TRUE(is_problem(first_problem(text), problem)) << text << first_problem(text);
}

std::string said(const std::string& tune) {
  const Reading reading = read_job(kJob + tune, "job.yaml");
  return reading.problems.empty() ? "" : to_string(reading.problems[0]);
}

TEST(Search, NeedsSomethingToVary) {
  EXPECT_THAT(said("tune: {trials: 3}\n"), IsProblem("job.yaml:2:1: SPEC_INCOMPLETE | tune"));
  EXPECT_THAT(said("tune: {search: {}}\n"), IsProblem("job.yaml:2:16: SPEC_BAD_SEARCH | tune.search"));
  EXPECT_THAT(said("tune: {search: [a]}\n"), IsProblem("job.yaml:2:16: SPEC_BAD_SEARCH | tune.search"));
}

TEST(Search, PbtVariesOnlyOptionsThatATrainingCanChange) {
  const auto population = [](const std::string& search, const std::string& more) {
    return said("tune: {sampler: pbt, search: {" + search + "}" + more + "}\n");
  };
  const std::string rate = "optimizer.lr: {low: 1e-4, high: 0.1}";
  EXPECT_EQ(population(rate + ", trainer.grad_clip_norm: {low: 0.1, high: 2}", ", trials: 24, population: 8"), "");
  EXPECT_THAT(population(rate, ""), HasSubstr("tune.trials is 50 (the default)"));
  EXPECT_THAT(population(rate, ", trials: 8"), HasSubstr("tune.trials is 8"));
  EXPECT_THAT(population("optimizer.name: [sgd, adam]", ", trials: 24"), HasSubstr("pbt cannot vary optimizer.name"));
  EXPECT_THAT(population("model.hidden: [[8], [9]]", ", trials: 24"), HasSubstr("pbt cannot vary model.hidden"));
  EXPECT_THAT(population(rate, ", trials: 24, pruner: asha"), HasSubstr("tune.sampler: pbt"));
  EXPECT_THAT(said("tune: {search: {" + rate + "}, population: 4}\n"),
              HasSubstr("tune.population has no effect with tune.sampler: auto"));
}

TEST(Search, PbtOfCommandsVariesOnlyParams) {
  const auto population = [](const std::string& search, const std::string& more) {
    const Reading reading = read_job(
        "command: [a]\nparams: {x: 1, kind: small}\n"
        "tune: {sampler: pbt, trials: 24, monitor: val/loss, search: {" +
            search + "}" + more + "}\n",
        "job.yaml");
    return reading.problems.empty() ? "" : to_string(reading.problems[0]);
  };
  EXPECT_EQ(population("params.x: {low: 0, high: 1}, params.kind: [small, large]", ", evaluations: 9"), "");
  EXPECT_THAT(population("params.x: {low: 0, high: 1}", ""),
              IsProblem("job.yaml:3:17: SPEC_INCOMPLETE | tune.sampler | tune.evaluations"));
  EXPECT_THAT(population("resources.cpus: [1, 2]", ", evaluations: 9"), HasSubstr("pbt cannot vary resources.cpus"));
}

TEST(Search, SeveralObjectivesRefuseMethodsForOneMetric) {
  const auto several = [](const std::string& more) {
    return said("tune: {search: {optimizer.lr: [1, 2]}, objectives: [val/loss, val/accuracy]" + more + "}\n");
  };
  EXPECT_EQ(several(""), "");
  EXPECT_EQ(several(", directions: [auto, min], pruner: none, constraints: [val/f1 >= 0.5, test/x <= 3]"), "");
  EXPECT_THAT(several(", monitor: val/f1"), HasSubstr("tune.monitor"));
  EXPECT_THAT(several(", mode: max"), HasSubstr("give tune.directions"));
  EXPECT_THAT(several(", pruner: asha"), HasSubstr("tune.pruner"));
  EXPECT_THAT(several(", sampler: cmaes"), HasSubstr("cmaes"));
  EXPECT_THAT(several(", sampler: pbt"), HasSubstr("pbt"));
  EXPECT_THAT(said("tune: {search: {optimizer.lr: [1, 2]}, constraints: [val/f1 >= 2], pruner: asha}\n"),
              AllOf(HasSubstr("tune.pruner"), HasSubstr("[SPEC_CONFLICT]")));
  EXPECT_THAT(said("tune: {search: {optimizer.lr: [1, 2]}, constraints: [val/f1 >= 2], end_early: true}\n"),
              AllOf(HasSubstr("tune.end_early"), HasSubstr("[SPEC_CONFLICT]")));
  EXPECT_THAT(several(", end_early: true"), HasSubstr("tune.end_early"));
  EXPECT_THAT(several(", warm_start: [a]"), HasSubstr("tune.warm_start"));
  EXPECT_THAT(several(", directions: [min, max, min]"), HasSubstr("tune.directions has 3"));
  EXPECT_THAT(said("tune: {search: {optimizer.lr: [1, 2]}, directions: [min, max]}\n"),
              HasSubstr("tune.directions has no effect without tune.objectives"));
  EXPECT_THAT(said("tune: {search: {optimizer.lr: [1, 2]}, objectives: [val/f1, val/f1]}\n"),
              HasSubstr("tune.objectives"));
  EXPECT_THAT(said("tune: {search: {optimizer.lr: [1, 2]}, constraints: [val/f1 > 2]}\n"),
              AllOf(HasSubstr("tune.constraints"), HasSubstr("[SPEC_BAD_FORMAT]")));
}

TEST(Search, ParameterConstraintsUseNumericParametersOnly) {
  const auto with = [](const std::string& constraint) {
    return said(
        "tune:\n  search: {optimizer.lr: {low: 0.1, high: 1}, trainer.batch_size: [32, 64], optimizer.name: [sgd, "
        "adam]}\n"
        "  parameter_constraints:\n    - " +
        constraint + "\n");
  };
  EXPECT_EQ(with("optimizer.lr * trainer.batch_size <= 30"), "");
  EXPECT_EQ(with("'\"optimizer.lr\" < 0.5'"), "");
  EXPECT_THAT(with("optimizer.lr"),
              IsProblem("job.yaml:5:7: COMPARISON_BAD_SYNTAX | tune.parameter_constraints | 'optimizer.lr'"));
  EXPECT_THAT(with("optimizer.lr <= (2"), AllOf(HasSubstr("[COMPARISON_BAD_SYNTAX]"), HasSubstr("(character 19)")));
  EXPECT_THAT(with("[1]"), AllOf(HasSubstr("tune.parameter_constraints"), HasSubstr("[SPEC_WRONG_TYPE]")));
  EXPECT_THAT(with("optimizer.momentum < 1"),
              AllOf(HasSubstr("'optimizer.momentum < 1'"), HasSubstr("[SPEC_UNKNOWN_NAME]")));
  EXPECT_THAT(with("optimizer.name < 1"),
              AllOf(HasSubstr("optimizer.name"), HasSubstr("sgd"), HasSubstr("[SPEC_CONFLICT]")));
}

// A constraint may exclude a value at the edge of a parameter's range.
TEST(Search, ValuesThatBreakAConstraintAreNotProbed) {
  const std::string search = "tune: {search: {optimizer.momentum: [0, 0.9], optimizer.lr: [0.1, 0.2]}";
  const std::string nesterov = "optimizer: {name: sgd, nesterov: true, momentum: 0.5}\n";
  EXPECT_THAT(said(nesterov + search + "}\n"), HasSubstr("tune.search: with optimizer.momentum=0"));
  EXPECT_EQ(said(nesterov + search + ", parameter_constraints: ['optimizer.momentum > 0']}\n"), "");
  EXPECT_EQ(said(nesterov + search + ", parameter_constraints: ['optimizer.lr < optimizer.momentum']}\n"), "");
  EXPECT_THAT(said(nesterov + search + ", parameter_constraints: ['optimizer.momentum + optimizer.lr < 2']}\n"),
              HasSubstr("tune.search: with optimizer.momentum=0"));
}

TEST(Search, ACostNeedsAPrice) {
  const std::string search = "tune: {search: {optimizer.lr: [1, 2]}";
  EXPECT_EQ(said(search + ", cost: 20, price: 1.5}\n"), "");
  EXPECT_THAT(said(search + ", cost: 20}\n"), HasSubstr("tune.cost needs tune.price"));
  EXPECT_THAT(said(search + ", price: 20}\n"), HasSubstr("tune.price has no effect without tune.cost"));
  EXPECT_THAT(said(search + ", cost: 0, price: 1}\n"), HasSubstr("tune.cost is 0, but must be"));
}

TEST(Budget, ACostNeedsAPriceAndAPowerNeedsAnEnergy) {
  EXPECT_EQ(said("budget: {cost: 20, price: 1.5, energy: 0.5, watts: 200}\n"), "");
  EXPECT_EQ(said("budget: {energy: 0.5}\n"), "") << "energy counters may tell the power";
  EXPECT_THAT(said("budget: {cost: 20}\n"), HasSubstr("budget.cost needs budget.price"));
  EXPECT_THAT(said("budget: {price: 20}\n"), HasSubstr("budget.price has no effect without budget.cost"));
  EXPECT_THAT(said("budget: {watts: 200}\n"), HasSubstr("budget.watts has no effect without budget.energy"));
  EXPECT_THAT(said("budget: {cost: 20 USD, price: 1}\n"), HasSubstr("budget.cost"));
}

TEST(Budget, TheTightestLimitCounts) {
  BudgetOptions budget{.seconds = 7200, .cost = 3, .price = 1.5, .kilowatt_hours = 0.5, .watts = 250};
  EXPECT_EQ(time_limit(budget), (TimeLimit{7200, "budget.time"})) << "of equal limits the first one";
  budget.cost = 1.5;
  EXPECT_EQ(time_limit(budget), (TimeLimit{3600, "budget.cost"}));
  budget.watts = 1000;
  EXPECT_EQ(time_limit(budget), (TimeLimit{1800, "budget.energy"}));
  EXPECT_EQ(time_limit({.kilowatt_hours = 0.5}), TimeLimit{}) << "the power is not known here";
  EXPECT_EQ(time_limit({}), TimeLimit{});
}

TEST(Budget, MeasuredEnergyLastsAsLongAsThePowerAllows) {
  const BudgetOptions budget{.kilowatt_hours = 0.001};  // 3600 J
  EXPECT_EQ(time_limit(budget, {.joules = 100, .seconds = 1}), TimeLimit{}) << "no power is known yet";
  EXPECT_EQ(time_limit(budget, {.joules = 600, .seconds = 10, .watts = 60}), (TimeLimit{60, "budget.energy"}));
  EXPECT_EQ(time_limit(budget, {.joules = 600, .seconds = 10, .watts = 300}), (TimeLimit{20, "budget.energy"}));
  EXPECT_EQ(time_limit(budget, {.joules = 3600, .seconds = 40}), (TimeLimit{40, "budget.energy"})) << "used up";
}

TEST(Budget, ASettingAllowsTheTime) {
  const BudgetOptions budget{.cost = 3, .price = 1.5};
  EXPECT_EQ(budget_setting("budget.time", budget, 5000.5, 0), "budget.time=5001s");
  EXPECT_EQ(budget_setting("budget.cost", budget, 3600, 0), "budget.cost=1.5");
  EXPECT_EQ(budget_setting("budget.cost", budget, 3601, 0), "budget.cost=1.51") << "rounded up";
  EXPECT_EQ(budget_setting("budget.energy", budget, 3600, 250), "budget.energy=0.25");
  EXPECT_EQ(budget_setting("budget.energy", {.kilowatt_hours = 0.2}, 3600, 0), "budget.energy=0.4") << "no power known";
}

// A trial reads the job with an override for every option that the search varies. read_job then does not check the
// values of the search.
TEST(Search, AnOverrideOfAVariedOptionMakesItOneTraining) {
  const std::string yaml = kJob +
                           "tune: {search: {optimizer.name: [sgd, adamw], optimizer.momentum: {low: 0, high: 0.9, if: "
                           "{optimizer.name: sgd}}}}\n";
  const Reading reading = read_job(yaml, "job.yaml", {"optimizer.name=sgd", "optimizer.momentum=0.5"});
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  EXPECT_EQ(overridden(reading.job.tune.search, {"trainer.seed=1", "optimizer.momentum=0.5"}), "optimizer.momentum");
  EXPECT_EQ(overridden(reading.job.tune.search, {"trainer.seed=1"}), "");
}

TEST(Search, TextReadsBack) {
  const std::string text =
      "{optimizer.name: [sgd, adamw], optimizer.lr: {low: 1e-04, high: 0.1, log: true}, model.hidden: [[64], [128, "
      "64]], "
      "optimizer.momentum: {low: 0, high: 0.9, step: 0.1, if: {optimizer.name: [sgd]}}, trainer.batch_size: {choices: "
      "[32, 64], ordered: true}}";
  const Reading reading = read_job(kJob + "tune: {search: " + text + "}\n", "job.yaml");
  ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  const std::string written = search_text(reading.job.tune.search);
  EXPECT_EQ(read_job(kJob + "tune: {search: " + written + "}\n", "job.yaml").job, reading.job) << written;
}

}  // namespace
}  // namespace sinew::spec
