#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

constexpr double kWhole = 27;

using Curve = double (*)(const Point&, double step);

// Falls as a power of the step towards an end that x decides. y decides how fast it falls, so that early values mislead
// a little.
double power_curve(const Point& point, double step) {
  const double end = 0.1 + (point[0] - 0.3) * (point[0] - 0.3);
  return end + 0.9 * std::pow(step, -0.4 - 0.6 * point[1]);
}

struct Ran {
  Study study;
  double steps = 0;
  std::map<int64_t, std::vector<double>> paused_at = {};
};

// Runs a study as a pool of workers does. With `fresh`, a new pruner makes every decision.
Ran run(const PrunerOptions& options, Curve curve, uint64_t seed, int trials, size_t workers, bool fresh) {
  Ran ran{Study(
      {read_space(R"([{"name":"x","type":"float","low":0,"high":1},{"name":"y","type":"float","low":0,"high":1}])"),
       {Direction::minimize},
       seed,
       trials})};
  Study& study = ran.study;
  auto sampler = make_sampler("random");
  auto pruner = make_pruner(options);
  RandomStream random(random_key({seed, 31}));
  std::vector<int64_t> running;
  while (true) {
    while (running.size() < workers) {
      if (fresh) pruner = make_pruner(options);
      const bool no_new = study.next_id() >= trials;
      if (const auto promotion = pruner->promote(study, no_new)) {
        EXPECT_EQ(study.trial(promotion->id).state, TrialState::paused);
        study.resume(promotion->id);
        running.push_back(promotion->id);
      } else if (!no_new) {
        running.push_back(study.start(suggest_next(study, *sampler)));
      } else {
        break;
      }
    }
    if (running.empty()) return ran;
    const size_t at = random.below(running.size());
    const int64_t id = running[at];
    const Trial& trial = study.trial(id);
    const double step = trial.reports.empty() ? 1 : trial.reports.back().step + 1;
    ++ran.steps;
    study.report(id, step, curve(trial.point, step));
    if (fresh) pruner = make_pruner(options);
    const Verdict verdict = pruner->judge(study, study.trial(id));
    EXPECT_FALSE(verdict.why.empty());
    if (step >= kWhole) {
      EXPECT_EQ(verdict.decision, PruneDecision::keep_running);
      study.tell(id, TrialState::complete, {curve(trial.point, step)});
    } else if (verdict.decision == PruneDecision::prune) {
      study.tell(id, TrialState::pruned);
    } else if (verdict.decision == PruneDecision::pause) {
      ran.paused_at[id].push_back(step);
      study.pause(id, verdict.estimate);
    } else {
      continue;
    }
    running.erase(running.begin() + static_cast<ptrdiff_t>(at));
  }
}

PrunerOptions options_of(const std::string& name) {
  return {name, 1, kWhole, 3};
}

std::vector<std::string> pruner_names() {
  std::vector<std::string> names;
  for (const PrunerMaker& maker : pruners()) names.push_back(maker.name);
  return names;
}

class EveryPruner : public testing::TestWithParam<std::string> {};

TEST_P(EveryPruner, DecidesByTheTrialsAlone) {
  const Ran one = run(options_of(GetParam()), power_curve, 3, 40, 4, false);
  const Ran other = run(options_of(GetParam()), power_curve, 3, 40, 4, true);
  EXPECT_EQ(one.steps, other.steps);
  EXPECT_EQ(one.paused_at, other.paused_at);
  EXPECT_EQ(one.study.observed(), other.study.observed());
}

int64_t whole_trials(const Study& study) {
  return std::ranges::count_if(study.trials(), [](const Trial& t) { return t.state == TrialState::complete; });
}

TEST_P(EveryPruner, CompletesATrialAndPausesOnlyIfItSaysSo) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (const int trials : {1, 2, 5}) {  // too few for any trial to be among the best third
      const Ran few = run(options_of(GetParam()), power_curve, seed, trials, 2, false);
      EXPECT_GT(whole_trials(few.study), 0) << trials;
    }
    const Ran ran = run(options_of(GetParam()), power_curve, seed, 40, 3, false);
    EXPECT_GT(whole_trials(ran.study), 0);
    EXPECT_TRUE(ran.paused_at.empty() || make_pruner(options_of(GetParam()))->pauses());
  }
}

TEST_P(EveryPruner, PrunesATrialWithANonFiniteValue) {
  if (GetParam() == "none") return;
  Study study({read_space(R"([{"name":"x","type":"float","low":0,"high":1}])")});
  auto pruner = make_pruner(options_of(GetParam()));
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const int64_t id = study.start({{0.5}, "test", "", {}});
    study.report(id, 1, value);
    EXPECT_EQ(pruner->judge(study, study.trial(id)).decision, PruneDecision::prune);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPruner, testing::ValuesIn(pruner_names()),
                         [](const auto& each) { return each.param; });

// Every trial on rung k + 1 was among the best third of rung k when it was promoted, and trials pause only at rungs.
TEST(Asha, PromotesOneInThreeFromEveryRung) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Ran ran = run(options_of("asha"), power_curve, seed, 81, 4, false);
    const double rungs[] = {1, 3, 9, 27};
    size_t came[4] = {};
    for (const Trial& trial : ran.study.trials()) {
      for (int k = 0; k < 4; ++k) came[k] += trial.reports.back().step >= rungs[k];
    }
    EXPECT_EQ(came[0], 81u);
    for (int k = 1; k < 4; ++k) {
      // Some were promoted early, when they were among the best of fewer trials.
      EXPECT_LE(came[k] * 3, came[k - 1] * 2 + 9) << k;
      // At the end all trials among the best third have been promoted.
      EXPECT_GE(came[k], came[k - 1] / 3) << k;
    }
    for (const auto& [id, steps] : ran.paused_at) {
      for (const double step : steps) EXPECT_TRUE(step == 1 || step == 3 || step == 9) << step;
    }
  }
}

TEST(Hyperband, BracketsBeginOnDifferentRungs) {
  const Ran ran = run(options_of("hyperband"), power_curve, 1, 90, 4, false);
  std::map<double, int> first;
  for (const auto& [id, steps] : ran.paused_at) ++first[steps[0]];
  EXPECT_GT(first[1], first[3]);
  EXPECT_GT(first[3], first[9]);
  EXPECT_GT(first[9], 0);
}

TEST(Median, PrunesATrialWorseThanTheMedian) {
  Study study({read_space(R"([{"name":"x","type":"float","low":0,"high":1}])")});
  auto pruner = make_pruner({"median", 2, 0, 3});
  for (int i = 0; i < 7; ++i) {
    const int64_t id = study.start({{0.1 * i}, "test", "", {}});
    for (int step = 1; step <= 5; ++step) study.report(id, step, i);
  }
  const int64_t bad = study.start({{0.9}, "test", "", {}});
  study.report(bad, 1, 5);
  // the trial has not reached min_resource yet
  EXPECT_EQ(pruner->judge(study, study.trial(bad)).decision, PruneDecision::keep_running);
  study.report(bad, 2, 4);
  EXPECT_EQ(pruner->judge(study, study.trial(bad)).decision, PruneDecision::prune);
  const int64_t good = study.start({{0.9}, "test", "", {}});
  study.report(good, 1, 5);
  study.report(good, 2, 3);
  EXPECT_EQ(pruner->judge(study, study.trial(good)).decision, PruneDecision::keep_running);
}

TEST(Pruners, InvalidOptionsAreRefused) {
  const auto refusal = [](const PrunerOptions& options) { return code_of([&] { make_pruner(options); }); };
  for (const char* name : {"asha", "hyperband", "curve"})
    EXPECT_EQ(refusal({name, 1, 0, 3}), "TUNE_BAD_PRUNER") << name;
  EXPECT_EQ(refusal({"asha", 0, 27, 3}), "TUNE_BAD_PRUNER");
  EXPECT_EQ(refusal({"asha", 30, 27, 3}), "TUNE_BAD_PRUNER");
  EXPECT_EQ(refusal({"asha", 1, 27, 1}), "TUNE_BAD_PRUNER");
  EXPECT_EQ(refusal({"sometimes"}), "TUNE_UNKNOWN_PRUNER");
  for (const double endless : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(refusal({"curve", 1, endless, 3}), "TUNE_BAD_PRUNER");
    EXPECT_EQ(refusal({"median", endless, 0, 3}), "TUNE_BAD_PRUNER");
  }
}

// Imitates training with a falling learning rate: the early values are mostly noise, and only the end is clear.
double noisy_curve(const Point& point, double step) {
  RandomStream random(random_key({static_cast<uint64_t>(1e9 * point[0]), static_cast<uint64_t>(step)}));
  const double left = 1 - step / kWhole;
  return 0.12 + 0.02 * (point[0] - 0.3) * (point[0] - 0.3) + 0.1 * left + 0.05 * left * random.normal();
}

double clear_curve(const Point& point, double step) {
  return 0.1 + (point[0] - 0.3) * (point[0] - 0.3) + 0.5 * std::exp(-step);
}

// A sampler that treats noise as results does worse than one that ignores it.
TEST(CurvePruner, GivesNoEstimateIfEarlyValuesAreMostlyNoise) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto told = [&](Curve curve) {
      const Ran ran = run(options_of("curve"), curve, seed, 40, 2, false);
      return std::ranges::count_if(ran.study.trials(), [&](const Trial& trial) {
        return trial.state != TrialState::complete && ran.study.known_loss(trial).has_value();
      });
    };
    EXPECT_EQ(told(noisy_curve), 0) << seed;
    EXPECT_GT(told(clear_curve), 20) << seed;
  }
}

// Trials that seem equal do not take turns, so the steps of resumed trials bring several of them to their end.
TEST(CurvePruner, CompletesTrialsAlthoughOthersSeemEqual) {
  int64_t whole = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Ran ran = run(options_of("curve"), noisy_curve, seed, 30, 1, false);
    whole += whole_trials(ran.study);
    EXPECT_LT(ran.steps, 0.27 * 30 * kWhole) << seed;
  }
  EXPECT_GE(whole, 50) << "34 where they take turns";
}

// The purpose of the pruner: it finds nearly the best trial with a small fraction of the steps.
TEST(CurvePruner, FindsNearlyTheBestForAPartOfTheWork) {
  double steps = 0, regret = 0, spread = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Ran ran = run(options_of("curve"), power_curve, seed, 60, 4, false);
    steps += ran.steps / (60 * kWhole) / 10;
    std::vector<double> ends;
    double found = 9;
    for (const Trial& trial : ran.study.trials()) {
      ends.push_back(power_curve(trial.point, kWhole));
      if (trial.state == TrialState::complete) found = std::min(found, ends.back());
    }
    std::ranges::sort(ends);
    regret += (found - ends[0]) / 10;
    spread += (ends[30] - ends[0]) / 10;
  }
  EXPECT_LT(steps, 0.3);
  EXPECT_LT(regret, 0.1 * spread);
}

}  // namespace
}  // namespace sinew::tune
