#include "forecast/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/hash.h"
#include "base/random.h"

namespace sinew::forecast {
namespace {

// A learning curve over the part of the training that is done, from above 0 to 1, and the learning rate of a schedule.
struct Truth {
  std::function<double(double)> curve;
  double noise = 0;
  std::function<double(double)> rate = [](double) { return 1.0; };
  double likeness = 0;  // of the noise of neighbours
};

// A kind of learning curves. `draw` gets the number of evaluations.
struct Kind {
  const char* name;
  bool lower;
  std::function<Truth(RandomStream&, double)> draw;
};

double log_uniform(RandomStream& random, double low, double high) {
  return std::exp(random.uniform(std::log(low), std::log(high)));
}

Truth exponential_loss(RandomStream& random, double) {
  const double a = random.uniform(0.05, 1), b = random.uniform(0.3, 2), t = log_uniform(random, 0.05, 1.5);
  return {[=](double x) { return a + b * std::exp(-x / t); }, b * log_uniform(random, 0.003, 0.05)};
}

Truth power_loss(RandomStream& random, double count) {
  const double a = random.uniform(0, 1), b = random.uniform(0.3, 2), p = random.uniform(0.2, 1.5);
  return {[=](double x) { return a + b * std::pow(1 + x * count, -p); }, b * log_uniform(random, 0.003, 0.05)};
}

Truth logarithm(RandomStream& random, double count) {
  const double b = random.uniform(0.3, 2), c = random.uniform(0.3, 0.8);
  return {[=](double x) { return b * (1 - c * std::log(1 + x * count) / std::log(1 + count)); },
          b * log_uniform(random, 0.003, 0.05)};
}

Truth two_phases(RandomStream& random, double) {
  const double a = random.uniform(0.05, 0.5), b = random.uniform(0.3, 2), c = random.uniform(0.1, 0.5),
               t = log_uniform(random, 0.02, 0.15), u = log_uniform(random, 0.2, 1.6);
  return {[=](double x) { return a + b * std::exp(-x / t) + c * std::exp(-x / u); },
          b * log_uniform(random, 0.003, 0.03)};
}

Truth hill_accuracy(RandomStream& random, double) {
  const double a = random.uniform(0.6, 0.99), k = log_uniform(random, 0.02, 0.5), p = random.uniform(0.7, 2);
  return {[=](double x) { return a / (1 + std::pow(x / k, -p)); }, log_uniform(random, 0.001, 0.02)};
}

Truth janoschek_accuracy(RandomStream& random, double) {
  const double a = random.uniform(0.6, 0.99), b = random.uniform(0.1, 0.5), k = log_uniform(random, 1, 20),
               p = random.uniform(0.4, 1.3);
  return {[=](double x) { return a - (a - b) * std::exp(-k * std::pow(x, p)); }, log_uniform(random, 0.001, 0.02)};
}

Truth overfitting(RandomStream& random, double) {
  const double a = random.uniform(0.2, 0.6), b = random.uniform(0.3, 2), t = log_uniform(random, 0.02, 0.2),
               c = log_uniform(random, 0.1, 1.6), p = random.uniform(0.7, 1.6);
  return {[=](double x) { return a + b * std::exp(-x / t) + c * std::pow(x, p); },
          b * log_uniform(random, 0.003, 0.03)};
}

Truth worse_from_the_start(RandomStream& random, double) {
  const double a = random.uniform(0.2, 1), b = random.uniform(0.05, 1), p = random.uniform(0.5, 1.5);
  return {[=](double x) { return a + b * std::pow(x, p); }, b * log_uniform(random, 0.01, 0.1)};
}

Truth plateau(RandomStream& random, double) {
  const double a = random.uniform(0.5, 0.95);
  return {[=](double x) { return a - 0.3 * std::exp(-x * 60); }, log_uniform(random, 0.003, 0.03)};
}

Truth with_like_noise(RandomStream& random, double count) {
  Truth truth = exponential_loss(random, count);
  truth.likeness = 0.6;
  return truth;
}

Truth with_rate(RandomStream& random, const std::function<double(double)>& rate) {
  const double a = random.uniform(0.1, 0.4), b = random.uniform(0.3, 2), t = log_uniform(random, 0.03, 0.5),
               gain = random.uniform(0.02, 0.45) * a;
  return {[=](double x) { return a + b * std::exp(-x / t) + gain * rate(x); }, gain * random.uniform(0.05, 0.4), rate};
}

double cosine(double x) {
  return 0.5 * (1 + std::cos(std::numbers::pi * x));
}
double step_drop(double x) {
  return x < 0.6 ? 1 : 0.1;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kAll = {
      {"exponential", true, exponential_loss},
      {"power", true, power_loss},
      {"logarithm", true, logarithm},
      {"two phases", true, two_phases},
      {"hill accuracy", false, hill_accuracy},
      {"janoschek accuracy", false, janoschek_accuracy},
      {"overfitting", true, overfitting},
      {"worse from the start", true, worse_from_the_start},
      {"plateau", false, plateau},
      {"noise like its neighbour", true, with_like_noise},
      {"cosine", true, [](RandomStream& random, double) { return with_rate(random, cosine); }},
      {"step drop", true, [](RandomStream& random, double) { return with_rate(random, step_drop); }}};
  return kAll;
}

constexpr int64_t kEach = 50;  // steps between two evaluations

std::vector<Evaluation> evaluations_of(const Truth& truth, bool lower, int count, RandomStream& random) {
  std::vector<Evaluation> found;
  double luck = 0;
  for (int i = 1; i <= count; ++i) {
    const double x = static_cast<double>(i) / count;
    luck = truth.likeness * luck + std::sqrt(1 - truth.likeness * truth.likeness) * random.normal();
    const double value = truth.curve(x) + truth.noise * luck;
    found.push_back({i * kEach, lower ? std::max(0.0, value) : std::clamp(value, 0.0, 1.0), truth.rate(x)});
  }
  return found;
}

Evaluations first(const std::vector<Evaluation>& all, size_t count, bool lower) {
  Evaluations evaluations;
  for (size_t i = 0; i < count; ++i) evaluations.add(all[i], lower);
  return evaluations;
}

Rest rest_of(const std::vector<Evaluation>& all, size_t done) {
  Rest rest{.last_step = static_cast<double>(all.back().step),
            .evaluations = static_cast<double>(all.size() - done),
            .lowest_rate = 1e9};
  for (size_t i = done; i < all.size(); ++i) {
    rest.lowest_rate = std::min(rest.lowest_rate, all[i].learning_rate);
    rest.highest_rate = std::max(rest.highest_rate, all[i].learning_rate);
    rest.mean_rate += all[i].learning_rate / rest.evaluations;
  }
  return rest;
}

double best_of(const std::vector<Evaluation>& all, bool lower) {
  double best = all[0].value;
  for (const Evaluation& one : all) best = lower ? std::min(best, one.value) : std::max(best, one.value);
  return best;
}

// The worth of the forecasts of one kind of curves.
struct Score {
  int inside = 0, all = 0, sure = 0, sure_and_right = 0;
  double width = 0;  // of the intervals, as a part of the whole change of the curve
  double coverage() const { return static_cast<double>(inside) / all; }
};

Score score_of(const Kind& kind, double done, int curves) {
  Score score;
  for (int seed = 0; seed < curves; ++seed) {
    RandomStream random(random_key({static_cast<uint64_t>(seed), digest_of(kind.name).low}));
    const int count = std::array{12, 20, 40, 100, 300}.at(static_cast<size_t>(seed % 5));
    const Truth truth = kind.draw(random, count);
    const auto all = evaluations_of(truth, kind.lower, count, random);
    const auto now = static_cast<size_t>(std::max(4.0, std::ceil(done * count)));
    const Evaluations so_far = first(all, now, kind.lower);
    const auto forecast = best_at_end(so_far, {"x", kind.lower, 0}, rest_of(all, now));
    if (!forecast) continue;
    const double best = best_of(all, kind.lower);
    ++score.all;
    score.inside += best >= forecast->low - 1e-12 && best <= forecast->high + 1e-12 ? 1 : 0;
    score.width += (forecast->high - forecast->low) / (std::abs(all[0].value - best) + 3 * truth.noise);
    if (forecast->none_better < kLikely) continue;
    ++score.sure;
    score.sure_and_right += best == *so_far.best ? 1 : 0;
  }
  return score;
}

TEST(BestAtEnd, IntervalsHoldTheBestValueOfManyKindsOfCurves) {
  Score together;
  double widest = 0;
  for (const Kind& kind : kinds()) {
    Score of_kind;
    for (const double done : {0.25, 0.5, 0.75}) {
      const Score score = score_of(kind, done, 40);
      for (Score* sum : {&of_kind, &together}) {
        sum->inside += score.inside;
        sum->all += score.all;
        sum->sure += score.sure;
        sum->sure_and_right += score.sure_and_right;
      }
      const double most = done == 0.25 ? 0.9 : done == 0.5 ? 0.45 : 0.2;
      EXPECT_LT(score.width / score.all, most) << kind.name << " at " << done;
      widest = std::max(widest, score.width / score.all);
    }
    EXPECT_EQ(of_kind.all, 120) << kind.name;
    EXPECT_GE(of_kind.coverage(), 0.8) << kind.name;
  }
  EXPECT_GE(together.coverage(), 0.88);
  EXPECT_GT(widest, 0.1) << "no interval is wide, so the curves are too easy";
  EXPECT_GT(together.sure, 100);
  EXPECT_GE(together.sure_and_right, kLikely * together.sure) << "of " << together.sure;
}

TEST(BestAtEnd, AFallingLearningRateMakesItWider) {
  RandomStream random(random_key({7}));
  const auto all = evaluations_of({[](double x) { return 0.3 + std::exp(-8 * x); }, 0.002}, true, 40, random);
  const Evaluations half = first(all, 20, true);
  const auto constant = best_at_end(half, {"x", true, 0}, {1000.0 * 2, 20, 1, 1}),
             falling = best_at_end(half, {"x", true, 0}, {1000.0 * 2, 20, 0, 0.4});
  ASSERT_TRUE(constant && falling);
  EXPECT_GT(falling->high - falling->low, 1.5 * (constant->high - constant->low));
  EXPECT_LT(falling->low, constant->low);
}

TEST(BestAtEnd, TheSameEvaluationsGiveTheSameForecastAndAMirroredMetricItsMirror) {
  RandomStream random(random_key({8}));
  const auto all = evaluations_of({[](double x) { return 5 + std::exp(-8 * x); }, 0.02}, true, 40, random);
  std::vector<Evaluation> mirrored = all;
  for (Evaluation& one : mirrored) one.value = 100 - one.value;  // no bound is near
  std::vector<Evaluation> far = all;
  for (Evaluation& one : far) one.value -= 1000;
  const auto one = best_at_end(first(all, 20, true), {"x", true, 0}, rest_of(all, 20)),
             again = best_at_end(first(all, 20, true), {"x", true, 0}, rest_of(all, 20)),
             mirror = best_at_end(first(mirrored, 20, false), {"x", false, 0}, rest_of(all, 20)),
             shifted = best_at_end(first(far, 20, true), {"x", true, 0}, rest_of(all, 20));
  ASSERT_TRUE(one && again && mirror && shifted);
  EXPECT_EQ(one->low, again->low);
  EXPECT_EQ(one->high, again->high);
  EXPECT_EQ(one->none_better, again->none_better);
  EXPECT_NEAR(mirror->low, 100 - one->high, 1e-6);
  EXPECT_NEAR(mirror->high, 100 - one->low, 1e-6);
  EXPECT_EQ(mirror->none_better, one->none_better);
  EXPECT_NEAR(shifted->high, one->high - 1000, 1e-6);
}

TEST(BestAtEnd, NeverPromisesWhatCannotBe) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(random_key({9, seed}));
    const bool lower = random.below(2) == 0;
    const size_t count = 4 + random.below(30), more = 1 + random.below(200);
    Evaluations evaluations;
    double value = random.uniform(0.2, 0.8);
    const double drift = random.uniform(-0.1, 0.1);
    for (size_t i = 0; i < count; ++i) {
      value = std::clamp(value + drift + 0.1 * random.normal(), 0.0, 1.0);
      evaluations.add({static_cast<int64_t>(i + 1) * kEach, random.below(8) == 0 ? NAN : value, random.uniform()},
                      lower);
    }
    const auto forecast = best_at_end(evaluations, {"x", lower, 0},
                                      {static_cast<double>((count + more) * kEach), static_cast<double>(more), 0, 0.1});
    if (!forecast) continue;
    EXPECT_LE(forecast->low, forecast->high);
    EXPECT_GE(forecast->low, 0);
    EXPECT_LE(forecast->high, 1);
    EXPECT_GE(forecast->none_better, 0);
    EXPECT_LE(forecast->none_better, 1);
    if (lower) {
      EXPECT_LE(forecast->high, *evaluations.best);
    } else {
      EXPECT_GE(forecast->low, *evaluations.best);
    }
  }
}

TEST(BestAtEnd, TakesNumbersOfAnySize) {
  for (const double large : {1e-320, 1e-200, 1e-100, 1e100, 1e155, 1e200, 1.7e308}) {
    Evaluations evaluations;
    for (int64_t i = 1; i <= 12; ++i) evaluations.add({i * kEach, large / static_cast<double>(i), 1}, true);
    const auto forecast = best_at_end(evaluations, {"val/perplexity", true, 0}, {1000, 10, 1, 1, 1});
    if (!forecast) continue;
    EXPECT_GE(forecast->low, 0) << large;
    EXPECT_LE(forecast->low, forecast->high) << large;
    EXPECT_LE(forecast->high, *evaluations.best) << large;
  }
}

TEST(BestAtEnd, SaysNothingAboutWhatItCannotKnow) {
  const Monitored loss{"x", true, 0};
  const Rest rest{1000, 10, 1, 1};
  EXPECT_FALSE(best_at_end({}, loss, rest));
  Evaluations few, constant, numberless;
  for (int64_t i = 1; i <= 3; ++i) few.add({i * kEach, 1 / static_cast<double>(i), 1}, true);
  for (int64_t i = 1; i <= 10; ++i) {
    constant.add({i * kEach, 0.1, 1}, true);
    numberless.add({i * kEach, i == 1 ? HUGE_VAL : NAN, 1}, true);
  }
  EXPECT_FALSE(best_at_end(few, loss, rest));
  EXPECT_FALSE(best_at_end(constant, loss, rest)) << "it may stay so, or begin to learn";
  EXPECT_FALSE(best_at_end(numberless, loss, rest));
  Evaluations perfect;
  for (int64_t i = 1; i <= 5; ++i) perfect.add({i * kEach, 1, 1}, false);
  const auto same = best_at_end(perfect, {"x", false, 0}, rest);
  ASSERT_TRUE(same) << "an accuracy of 1 stays the best";
  EXPECT_EQ(same->low, 1);
  EXPECT_EQ(same->high, 1);
  EXPECT_EQ(same->none_better, 1);
  Evaluations warming_up;
  for (int64_t i = 1; i <= 10; ++i) {
    const auto x = static_cast<double>(i);
    warming_up.add({i * kEach, 1 / x, x / 30}, true);
  }
  EXPECT_FALSE(best_at_end(warming_up, loss, {1000, 10, 0, 0.5, 1})) << "the learning rate rises to 1";
  EXPECT_TRUE(best_at_end(warming_up, loss, {1000, 10, 0, 0.2, 0.34}));
  const auto over = best_at_end(few, loss, {3.0 * kEach, 0, 1, 1});
  ASSERT_TRUE(over);
  EXPECT_EQ(over->low, *few.best) << "nothing is to come";
}

TEST(BestAtEnd, ASmallerImprovementThanTheDeltaIsNone) {
  Evaluations evaluations;
  for (int64_t i = 1; i <= 20; ++i) {
    const auto x = static_cast<double>(i);
    evaluations.add({i * kEach, 0.5 + 1 / x + 0.001 * std::sin(7 * x), 1}, true);
  }
  const Rest rest{30.0 * kEach, 10, 1, 1};
  EXPECT_LT(best_at_end(evaluations, {"x", true, 0}, rest)->none_better, 0.2);
  EXPECT_GT(best_at_end(evaluations, {"x", true, 0.2}, rest)->none_better, 0.9);
}

TEST(Evaluations, ManyAreMergedAndTellTheSame) {
  Evaluations evaluations;
  double sum = 0;
  for (int64_t i = 1; i <= 10'000; ++i) {
    const double value = 1 / static_cast<double>(i) + (i == 777 ? -5 : 0);
    sum += value;
    evaluations.add({i, value, i < 6000 ? 1.0 : 0.1}, true);
  }
  EXPECT_LE(evaluations.points.size(), 64U);
  EXPECT_GE(evaluations.points.size(), 32U);
  EXPECT_EQ(evaluations.best_step, 777);
  EXPECT_EQ(evaluations.since_best, 10'000 - 777);
  EXPECT_EQ(evaluations.count, 10'000);
  EXPECT_EQ(evaluations.dropped_step, 6000);
  double merged = 0, count = 0, before = 0;
  for (const Evaluations::Point& point : evaluations.points) {
    merged += point.count * point.value;
    count += point.count;
    EXPECT_GT(point.step, before);
    before = point.step;
  }
  EXPECT_EQ(count, 10'000);
  EXPECT_NEAR(merged, sum, 1e-9);
}

std::vector<Evaluation> overfitted(int count, int best) {
  std::vector<Evaluation> all;
  for (int i = 1; i <= count; ++i)
    all.push_back({i * kEach, 1 + 0.02 * std::abs(i - best) + 0.001 * std::sin(5.0 * i), 1});
  return all;
}

TEST(Evaluations, ThePatienceOutlastsThePausesBeforeTheBestValue) {
  Evaluations evaluations;
  int64_t step = 0;
  const auto add = [&](double value) { evaluations.add({++step, value, 1}, true); };
  EXPECT_EQ(evaluations.patience(), 1);
  add(5);
  for (int i = 0; i < 10; ++i) add(6);
  add(4);  // after a pause of ten
  for (int i = 0; i < 3; ++i) add(7);
  EXPECT_EQ(evaluations.longest_pause, 10);
  EXPECT_EQ(evaluations.patience(), 11) << "a patience of 3 would have ended it in the pause";
  for (int i = 0; i < 20; ++i) add(7);
  EXPECT_EQ(evaluations.patience(), 23);
}

TEST(EarlyEnd, ComesAfterTheBestEvaluationAndKeepsIt) {
  const auto all = overfitted(60, 20);
  const auto end = early_end(all, {"x", true, 0});
  ASSERT_TRUE(end);
  EXPECT_GE(end->none_better, kLikely);
  EXPECT_EQ(end->evaluation, 19 + static_cast<size_t>(end->patience)) << "patience ends the training there";
  EXPECT_LT(end->evaluation, 40U);
  std::vector<Evaluation> mirrored = all;
  for (Evaluation& one : mirrored) one.value = -one.value;
  EXPECT_EQ(early_end(mirrored, {"x", false, 0})->evaluation, end->evaluation);
}

TEST(EarlyEnd, PatienceOutlastsEveryPauseBeforeTheBest) {
  auto all = overfitted(80, 30);
  for (size_t i = 5; i < 20; ++i) all[i].value = 1.6;  // 15 evaluations without a better one
  const auto end = early_end(all, {"x", true, 0});
  ASSERT_TRUE(end);
  EXPECT_GE(end->patience, 16);
  EXPECT_EQ(end->evaluation, 29 + static_cast<size_t>(end->patience));
}

TEST(EarlyEnd, ThereIsNoneWhileATrainingGetsBetter) {
  EXPECT_FALSE(early_end({}, {"x", true, 0}));
  EXPECT_FALSE(early_end(overfitted(60, 60), {"x", true, 0}));
  EXPECT_FALSE(early_end(overfitted(5, 4), {"x", true, 0}));
  std::vector<Evaluation> numberless = overfitted(30, 10);
  for (Evaluation& one : numberless) one.value = NAN;
  EXPECT_FALSE(early_end(numberless, {"x", true, 0}));
}

}  // namespace
}  // namespace sinew::forecast
