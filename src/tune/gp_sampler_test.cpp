// Tests the samplers that use Gaussian processes. The same trials give the same suggestion, the units of the objective
// do not matter, constraints and trade-offs are found, and the results are good for fixed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "tune/gp_warp.h"
#include "tune/lbfgs.h"
#include "tune/multi_objective.h"
#include "tune/testing.h"
#include "tune/trust_region.h"

namespace sinew::tune {
namespace {

Space square(int dimensions) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < dimensions; ++i) {
    Parameter parameter;
    parameter.name = "x" + std::to_string(i);
    parameters.push_back(parameter);
  }
  return Space(parameters);
}

using Values = std::vector<double> (*)(const Space&, const Point&);

Study run(const char* name, StudyOptions options, int trials, Values values, double scale = 1, double shift = 0) {
  Study study(std::move(options));
  const auto sampler = make_sampler(name);
  for (int i = 0; i < trials; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    std::vector<double> told = values(study.space(), study.trial(id).point);
    for (double& value : told) value = scale * value + shift;
    study.tell(id, TrialState::complete, std::move(told));
  }
  return study;
}

std::vector<double> bowl_value(const Space& space, const Point& point) {
  return {bowl(space, point)};
}

double best_of(const Study& study) {
  double best = std::numeric_limits<double>::infinity();
  for (const Trial& trial : study.trials()) best = std::min(best, study.loss(trial));
  return best;
}

TEST(GpSampler, TheSameTrialsGetTheSameSuggestion) {
  for (const char* name : {"gp", "trust_region"}) {
    Study study({mixed_space(), {Direction::minimize}, 5, 30});
    const auto kept = make_sampler(name);
    for (int i = 0; i < 24; ++i) {
      const Suggestion one = suggest_next(study, *kept), other = suggest_next(study, *make_sampler(name));
      ASSERT_TRUE(same_point(one.point, other.point)) << name << ' ' << i;
      ASSERT_EQ(one.sampler_state, other.sampler_state);
      EXPECT_FALSE(one.why.empty());
      const int64_t id = study.start(one);
      if (i % 3 == 0) continue;  // this trial keeps running
      study.tell(id, TrialState::complete, {bowl(study.space(), study.trial(id).point)});
    }
  }
}

// The factors are powers of two, so that scaling changes no rounding.
TEST(GpSampler, UnitsOfTheObjectiveDoNotMatter) {
  const Study plain = run("gp", {mixed_space(), {Direction::minimize}, 9, 25}, 25, bowl_value);
  const Study scaled = run("gp", {mixed_space(), {Direction::minimize}, 9, 25}, 25, bowl_value, 1024);
  const Study turned = run("gp", {mixed_space(), {Direction::maximize}, 9, 25}, 25, bowl_value, -4);
  for (size_t i = 0; i < plain.trials().size(); ++i) {
    EXPECT_TRUE(same_point(plain.trials()[i].point, scaled.trials()[i].point)) << i;
    EXPECT_TRUE(same_point(plain.trials()[i].point, turned.trials()[i].point)) << i;
  }
}

// Branin's function, which has three valleys.
std::vector<double> branin(const Space&, const Point& point) {
  const double x = 15 * point[0] - 5, y = 15 * point[1];
  const double bend = y - 5.1 / (4 * std::numbers::pi * std::numbers::pi) * x * x + 5 / std::numbers::pi * x - 6;
  return {bend * bend + 10 * (1 - 1 / (8 * std::numbers::pi)) * std::cos(x) + 10};
}

// Returns how many of eight parallel suggestions are nearly equal to an earlier one of the eight.
int repeated(uint64_t seed) {
  Study study = run("gp", {square(2), {Direction::minimize}, seed, 40}, 14, branin);
  const auto sampler = make_sampler("gp");
  std::vector<std::vector<double>> running;
  int count = 0;
  for (int i = 0; i < 8; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const auto unit = study.space().to_unit(study.trial(id).point);
    count += std::ranges::any_of(running, [&](const std::vector<double>& other) {
      return std::max(std::abs(unit[0] - other[0]), std::abs(unit[1] - other[1])) < 0.005;
    });
    running.push_back(unit);
  }
  return count;
}

TEST(GpSampler, ParallelSuggestionsDiffer) {
  int count = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) count += repeated(seed);
  EXPECT_LE(count, 8) << "of 42";
}

TEST(GpSampler, TriesEveryPointOfAFiniteSpaceOnce) {
  const Study study = run("gp", {finite_space(), {Direction::minimize}, 1, 10}, 10, bowl_value);
  EXPECT_EQ(study.different_points(), 10);
}

TEST(GpSampler, SurvivesFailuresPlateausAndNaN) {
  for (const char* name : {"gp", "trust_region"}) {
    Study study({mixed_space(), {Direction::minimize}, 2, 30});
    const auto sampler = make_sampler(name);
    for (int i = 0; i < 20; ++i) {
      const int64_t id = study.start(suggest_next(study, *sampler));
      if (i % 4 == 0)
        study.tell(id, TrialState::failed);
      else if (i % 4 == 1)
        study.tell(id, TrialState::complete, {std::nan("")});
      else
        study.tell(id, TrialState::complete, {i % 4 == 2 ? 1.0 : std::numeric_limits<double>::infinity()});
    }
    EXPECT_EQ(study.observed().size(), 20U);
  }
}

TEST(GpSampler, FindsTheBestFeasiblePoint) {
  Study study({square(2), {Direction::minimize}, 4, 40});
  const auto sampler = make_sampler("gp");
  double best = 1;
  for (int i = 0; i < 35; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const Point x = study.trial(id).point;
    // Without the constraint, x0 + x1 is lowest at (0, 0). The constraint forbids the circle of radius 0.8 around it.
    const double constraint = 0.64 - x[0] * x[0] - x[1] * x[1];
    if (constraint <= 0) best = std::min(best, x[0] + x[1]);
    study.tell(id, TrialState::complete, {x[0] + x[1]}, {constraint});
  }
  EXPECT_GE(best, 0.8);  // the minimum is 0.8, at the two ends of the arc
  EXPECT_LT(best, 0.82);
}

TEST(GpSampler, FindsTradeOffs) {
  const auto values = [](const Space&, const Point& x) -> std::vector<double> {
    const double far = 1 + 3 * (std::abs(x[1] - 0.4) + std::abs(x[2] - 0.7));
    return {x[0], far * (1 - std::sqrt(x[0] / far))};
  };
  const StudyOptions options{square(3), {Direction::minimize, Direction::minimize}, 6, 40};
  const auto volume = [](const Study& study) {
    std::vector<Objectives> points;
    for (const Trial& trial : study.trials()) points.push_back(trial.values);
    return hypervolume(points, {1.1, 1.1});
  };
  const double process = volume(run("gp", options, 40, values)), random = volume(run("random", options, 40, values));
  EXPECT_GT(process, 0.6);  // the whole front has 0.877
  EXPECT_GT(process, random + 0.1);
}

// Returns the regret after 40 trials, divided by the regret of random search.
double regret(const char* name, const Space& space, Values values) {
  double sum = 0, random = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    sum += best_of(run(name, {space, {Direction::minimize}, seed, 40}, 40, values));
    random += best_of(run("random", {space, {Direction::minimize}, seed + 100, 40}, 40, values));
  }
  return sum / random;
}

std::vector<double> waves(const Space& space, const Point& point) {
  double sum = 0;
  for (size_t i = 0; i < space.size(); ++i) {
    const double off = point[i] - 0.37;
    sum += off * off + 0.05 * (1 - std::cos(4 * std::numbers::pi * off));
  }
  return {sum};
}

std::vector<double> valley(const Space&, const Point& x) {
  const double across = x[0] + x[1] - 2 * x[2] * x[2] - 0.3;
  return {across * across * 20 + (x[0] - 0.6) * (x[0] - 0.6)};
}

TEST(GpSampler, RegretStaysLow) {
  EXPECT_LT(regret("gp", mixed_space(), bowl_value), 0.15);
  EXPECT_LT(regret("gp", square(4), waves), 0.25);
  EXPECT_LT(regret("gp", square(3), valley), 0.25);
  EXPECT_LT(regret("trust_region", square(4), waves), 0.35);
}

TEST(TrustRegion, ShrinksWhenItFailsAndFollowsTheBest) {
  Study study({square(2), {Direction::minimize}, 1, 40});
  const auto tell = [&](const char* by, double value) {
    const double i = static_cast<double>(study.next_id());
    study.tell(study.start({{0.01 * i, 0.5}, by, "", {}}), TrialState::complete, {value});
  };
  EXPECT_EQ(trust_region_of(study).centre, -1);
  for (const double value : {9.0, 5.0, 7.0, 8.0}) tell("gp", value);
  EXPECT_EQ(trust_region_of(study).centre, 1);
  const double side = trust_region_of(study).side;
  for (int i = 0; i < 4; ++i) tell(kTrustRegion, 6);
  EXPECT_EQ(trust_region_of(study).side, side / 2);
  tell("gp", 4);
  EXPECT_EQ(trust_region_of(study).centre, study.next_id() - 1);
  for (int i = 0; i < 27; ++i) tell(kTrustRegion, 6);
  EXPECT_EQ(trust_region_of(study).restarts, 1);
}

TEST(Warp, KeepsOrderAndForgetsUnits) {
  RandomStream random(random_key({3}));
  std::vector<double> losses, moved;
  for (int i = 0; i < 31; ++i) losses.push_back(std::exp(5 * random.normal()));
  losses[7] = losses[8];
  for (const double loss : losses) moved.push_back(loss * 8);
  losses[3] = moved[3] = std::numeric_limits<double>::infinity();
  for (const WarpKind kind : {WarpKind::linear, WarpKind::halfrank, WarpKind::bent, WarpKind::logarithm}) {
    const Eigen::VectorXd values = warp(losses, kind).values;
    EXPECT_TRUE(values.allFinite());
    EXPECT_NEAR(values.mean(), 0, 1e-9);
    EXPECT_NEAR(values.squaredNorm(), 31, 1e-6);
    EXPECT_LT((values - warp(moved, kind).values).lpNorm<Eigen::Infinity>(), 1e-9);
    for (Eigen::Index i = 0; i < 31; ++i) {
      for (Eigen::Index j = 0; j < 31; ++j) {
        const double a = losses[static_cast<size_t>(i)], b = losses[static_cast<size_t>(j)];
        if (a == b) {
          EXPECT_EQ(values[i], values[j]);
        } else if (std::isfinite(a) && std::isfinite(b)) {
          EXPECT_EQ(a < b, values[i] < values[j]);
        }
      }
    }
  }
  EXPECT_TRUE(warp(std::vector<double>(5, 2.0), WarpKind::logarithm).values.isZero());
}

// Compares the reported slopes of the logarithmic warps, relative to halfrank, with finite differences of the warped
// values.
TEST(Warp, ReportsItsSlopes) {
  std::vector<double> losses;
  for (int i = 0; i < 400; ++i) losses.push_back(std::pow(i * 0.01, 1.5));
  for (const WarpKind kind : {WarpKind::bent, WarpKind::logarithm}) {
    const Warped plain = warp(losses, WarpKind::halfrank), bent = warp(losses, kind);
    double sum = 0;
    for (Eigen::Index i = 1; i + 1 < 400; ++i) {
      sum += std::log((bent.values[i + 1] - bent.values[i - 1]) / (plain.values[i + 1] - plain.values[i - 1]));
    }
    EXPECT_NEAR(bent.log_slopes, sum, 0.03 * 400);
  }
}

TEST(Minimise, FindsCornersAndValleys) {
  using Eigen::VectorXd;
  const auto rosenbrock = [](const VectorXd& x, VectorXd& slope) {
    const double a = x[1] - x[0] * x[0], b = 1 - x[0];
    slope << -400 * x[0] * a - 2 * b, 200 * a;
    return 100 * a * a + b * b;
  };
  VectorXd start(2), low(2), high(2), target(2);
  start << -1.2, 1;
  low << -2, -2;
  high << 2, 2;
  const LbfgsOptions options{.most_evaluations = 300, .gradient_tolerance = 1e-8, .value_tolerance = 0};
  target << 1, 1;
  EXPECT_LT((minimise(rosenbrock, start, low, high, options).x - target).norm(), 1e-4);
  high << 0.5, 2;  // with this bound, the best point is on the boundary of the box, at (0.5, 0.25)
  target << 0.5, 0.25;
  EXPECT_LT((minimise(rosenbrock, start, low, high, options).x - target).norm(), 1e-4);
}

}  // namespace
}  // namespace sinew::tune
