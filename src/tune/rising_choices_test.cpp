// Tests which choices of a category are worth searching although they are not the best so far, and that a search within
// a choice keeps that choice.
#include "tune/rising_choices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tune/acquisition_search.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

constexpr const char* kLearners = R"([
  {"name":"x","type":"float","low":0,"high":1},
  {"name":"act","type":"cat","choices":["relu","tanh"]},
  {"name":"learner","type":"cat","choices":["net","trees","line"]},
  {"name":"kernel","type":"cat","choices":["a","b"],"if":{"learner":["line"]}},
  {"name":"depth","type":"int","low":1,"high":9,"if":{"learner":["trees"]}}])";
constexpr double kNone = kInactive;

class Record {
 public:
  explicit Record(int64_t budget) : study({read_space(kLearners), {Direction::minimize}, 1, budget}) {}
  // Adds trials of one learner and activation with these losses.
  void add(double learner, std::vector<double> losses, double act = 0) {
    for (const double loss : losses) study.tell(start(learner, act), TrialState::complete, {loss});
  }
  int64_t start(double learner, double act = 0, double kernel = 0) {
    const double x = 0.001 * static_cast<double>(study.next_id());
    return study.start({{x, act, learner, learner == 2 ? kernel : kNone, learner == 1 ? 3 : kNone}, "test", "", {}});
  }
  std::optional<std::pair<size_t, double>> next() const {
    const auto choices = rising_choices(study);
    return choices.empty() ? std::nullopt : std::optional(std::pair(choices[0].parameter, choices[0].value));
  }
  Study study;
};

const std::pair<size_t, double> kNet{2, 0}, kTrees{2, 1}, kLine{2, 2}, kTanh{1, 1}, kKernel{3, 1};

TEST(RisingChoices, TheChoiceWithTheFewestTrialsIsNext) {
  Record record(100);
  EXPECT_EQ(record.next(), std::nullopt) << "nothing is known";
  record.add(0, {0.3, 0.2, 0.1});
  EXPECT_EQ(record.next(), std::nullopt) << "a choice that nobody tried is for the others to try";
  record.add(1, {0.9, 0.8});
  record.add(2, {0.9});
  EXPECT_EQ(record.next(), kLine);
  record.start(2);
  record.start(2);
  EXPECT_EQ(record.next(), kTrees) << "those that run count";
  record.add(1, {0.01});
  EXPECT_EQ(record.next(), kNet) << "never the best trial's";
}

TEST(RisingChoices, AChoiceThatCannotCatchUpIsDropped) {
  for (const int64_t budget : {60, 20}) {
    Record record(budget);
    record.add(0, {0.1});
    record.add(1, {0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55});  // falls by 0.05 a trial: 9 more to reach the best
    EXPECT_EQ(record.next(), kTrees);
    record.add(0, {0.2, 0.2, 0.2});
    EXPECT_EQ(record.next(), budget == 60 ? std::optional(kTrees) : std::nullopt) << budget;
    record.add(1, {0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6});
    EXPECT_EQ(record.next(), std::nullopt) << "it has not fallen for as many trials as count";
  }
}

TEST(RisingChoices, ParentCategoriesComeFirst) {
  Record record(100);
  record.add(2, {0.1});
  record.add(0, {0.5, 0.5, 0.5}, 1);
  record.add(1, {0.6, 0.6});
  EXPECT_EQ(record.next(), kTrees);
  record.add(1, {0.6, 0.6, 0.6, 0.6, 0.6, 0.6});
  EXPECT_EQ(record.next(), kNet);
  record.add(0, {0.5, 0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(record.next(), kTanh) << "of the three that were tried with it only";
  record.add(2, {0.5, 0.5, 0.5, 0.5, 0.5}, 1);
  EXPECT_EQ(record.next(), std::nullopt);
}

TEST(RisingChoices, ConditionalCategoriesComeLastAndOnlyIfTheBestHasThem) {
  Record record(100);
  record.add(2, {0.1, 0.5}, 1);
  record.study.tell(record.start(2, 1, 1), TrialState::complete, {0.2});
  record.add(2, {0.6, 0.6}, 0);
  EXPECT_EQ(record.next(), (std::pair<size_t, double>{1, 0})) << "though it has more trials than the other kernel";
  record.add(2, {0.6, 0.6, 0.6, 0.6, 0.6, 0.6}, 0);
  EXPECT_EQ(record.next(), kKernel);
  record.add(0, {0.05}, 1);
  EXPECT_EQ(record.next(), std::nullopt) << "a kernel of the line, which is behind itself";
}

TEST(RisingChoices, PausedTrialsCountWithTheirEstimate) {
  Record record(100);
  record.add(0, {0.1});
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(record.next(), i > 0 ? std::optional(kTrees) : std::nullopt);
    const int64_t id = record.start(1);
    record.study.report(id, 1, 0.8);
    record.study.pause(id, 0.7);
  }
  EXPECT_EQ(record.next(), std::nullopt) << "its pruner expects of none of eight to get there";
}

// The only point of "line" has been tried. The sampler must then search within "trees".
TEST(RisingChoices, AChoiceWithoutUntriedPointsIsSkipped) {
  Study study({read_space(R"([{"name":"learner","type":"cat","choices":["net","trees","line"]},
    {"name":"x","type":"float","low":0,"high":1,"if":{"learner":["net","trees"]}}])"),
               {Direction::minimize},
               1,
               60});
  const auto sampler = make_sampler("gp");
  std::set<double> looked;
  for (int i = 0; i < 30; ++i) {
    const int64_t id = study.start(suggest_next(study, *sampler));
    const Point& p = study.trial(id).point;
    if (study.trial(id).why.find("is behind") != std::string::npos) looked.insert(p[0]);
    study.tell(id, TrialState::complete, {p[0] == 2 ? 0.9 : 0.2 * p[0] + 0.1 * std::pow(p[1] - 0.3, 2)});
  }
  EXPECT_EQ(looked, std::set<double>{1});
}

TEST(RisingChoices, FailedTrialsAreNoImprovement) {
  Record record(100);
  record.add(0, {0.1});
  for (int i = 0; i < 9; ++i) record.study.tell(record.start(1), TrialState::failed);
  EXPECT_EQ(record.next(), std::nullopt);
}

class Anywhere : public AcquisitionFunction {
 public:
  std::vector<double> at_all(const Points& points) const override {
    return std::vector<double>(static_cast<size_t>(points.rows()), 0);
  }
  double at(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const override {
    slope.setZero(x.size());
    return 0;
  }
};

TEST(RisingChoices, ASearchWithinAChoiceKeepsIt) {
  Record record(100);
  record.add(0, {0.1, 0.2, 0.3});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(random_key({seed, 5}));
    SearchOptions options;
    options.centres = {row_of(record.study.space(), record.study.trial(0).point)};
    options.within = Choice{2, 1};
    const auto found = maximise_acquisition(record.study, Anywhere(), random, options);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->point[2], 1);
    EXPECT_FALSE(std::isnan(found->point[4])) << "what depends on it is there";
    options.within = Choice{3, 1};
    const auto deep = maximise_acquisition(record.study, Anywhere(), random, options);
    ASSERT_TRUE(deep);
    EXPECT_EQ(deep->point[2], 2);
    EXPECT_EQ(deep->point[3], 1);
  }
}

// The best choice lies in a narrow valley. Until the sampler searches there, the choice looks worse than others.
TEST(RisingChoices, TheGaussianProcessFindsTheBestChoiceThoughItIsBehind) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Study study({read_space(kLearners), {Direction::minimize}, seed, 80});
    const auto sampler = make_sampler("gp");
    double best = 1;
    for (int i = 0; i < 80; ++i) {
      const int64_t id = study.start(suggest_next(study, *sampler));
      const Point& p = study.trial(id).point;
      const double valley = 0.4 * (1 - std::exp(-std::pow((p[0] - 0.83) / 0.045, 2)));
      const double loss = p[2] == 1 ? valley + 0.01 * std::abs(p[4] - 7) : 0.1 + 0.3 * std::pow(p[0] - 0.3, 2);
      best = std::min(best, loss);
      study.tell(id, TrialState::complete, {loss});
    }
    sum += best;
  }
  EXPECT_LT(sum / 20, 0.03) << "0.1 is the best of the others";
}

}  // namespace
}  // namespace sinew::tune
