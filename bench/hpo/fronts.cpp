// Measures samplers on tasks with two objectives, and on tasks with constraints.
//
//   hpo_fronts --samplers auto,tpe [--tasks zdt1,dtlz2,bird] [--seeds 10] [--trials 100]
//
// For two objectives, it prints the hypervolume within (1.1, 1.1), relative to that of the ideal front: 1 is perfect.
// For a constrained objective, it prints how far the best feasible value is above the smallest feasible value: 0 is
// perfect. Tasks: Zitzler, Deb, Thiele 2000; Deb et al. 2002; Mishra 2006; Gardner et al. 2014.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "options.h"

namespace sinew::bench {
namespace {

constexpr double kPi = std::numbers::pi;
using Values = std::vector<double>;
using Pairs = std::vector<std::pair<double, double>>;

struct Outcome {
  Values objectives, constraints;
};

struct Task {
  std::string name, space;
  std::function<Outcome(const Values&)> evaluate;
  double ideal;  // the hypervolume, or the smallest feasible value
};

std::string box(int axes, double low, double high) {
  std::string space = "[";
  for (int i = 0; i < axes; ++i)
    space += std::string(i > 0 ? "," : "") + R"({"name":"x)" + std::to_string(i) + R"(","type":"float","low":)" +
             std::to_string(low) + R"(,"high":)" + std::to_string(high) + "}";
  return space + "]";
}

double volume_of(Pairs points) {
  constexpr double kEnd = 1.1;
  std::ranges::sort(points);
  double sum = 0, below = kEnd;
  for (const auto& [a, b] : points) {
    if (a >= kEnd || b >= below) continue;
    sum += (kEnd - a) * (below - b);
    below = b;
  }
  return sum;
}

double front_volume(const std::function<std::pair<double, double>(double)>& front) {
  constexpr int kPoints = 20'000;
  Pairs points;
  for (int i = 0; i <= kPoints; ++i) points.push_back(front(static_cast<double>(i) / kPoints));
  return volume_of(std::move(points));
}

// Returns the function h of the ZDT family. `a` is the first objective.
double zdt_shape(int which, double a, double g) {
  if (which == 2) return 1 - (a / g) * (a / g);
  return 1 - std::sqrt(a / g) - (which == 3 ? a / g * std::sin(10 * kPi * a) : 0);
}

Task zdt(int which) {
  return {"zdt" + std::to_string(which), box(6, 0, 1),
          [=](const Values& x) {
            double g = 1;
            for (size_t i = 1; i < x.size(); ++i) g += 9 * x[i] / 5;
            return Outcome{{x[0], g * zdt_shape(which, x[0], g)}, {}};
          },
          front_volume([=](double a) { return std::pair(a, zdt_shape(which, a, 1)); })};
}

Task dtlz2() {
  return {"dtlz2", box(6, 0, 1),
          [](const Values& x) {
            double g = 1;
            for (size_t i = 1; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
            return Outcome{{g * std::cos(x[0] * kPi / 2), g * std::sin(x[0] * kPi / 2)}, {}};
          },
          front_volume([](double a) { return std::pair(std::cos(a * kPi / 2), std::sin(a * kPi / 2)); })};
}

Task bird() {
  return {"bird",
          R"([{"name":"x0","type":"float","low":-10,"high":0},{"name":"x1","type":"float","low":-6.5,"high":0}])",
          [](const Values& p) {
            const double x = p[0], y = p[1];
            const double value = std::sin(y) * std::exp(std::pow(1 - std::cos(x), 2)) +
                                 std::cos(x) * std::exp(std::pow(1 - std::sin(y), 2)) + (x - y) * (x - y);
            return Outcome{{value}, {(x + 5) * (x + 5) + (y + 5) * (y + 5) - 25}};
          },
          -106.76453674926468};
}

Task gardner() {
  const auto evaluate = [](const Values& p) {
    const double x = p[0], y = p[1];
    return Outcome{{std::cos(2 * x) * std::cos(y) + std::sin(x)},
                   {std::cos(x) * std::cos(y) - std::sin(x) * std::sin(y) + 0.5}};
  };
  double least = 1e9;
  for (int i = 0; i <= 1500; ++i) {
    for (int j = 0; j <= 1500; ++j) {
      const Outcome outcome = evaluate({6.0 * i / 1500, 6.0 * j / 1500});
      if (outcome.constraints[0] <= 0) least = std::min(least, outcome.objectives[0]);
    }
  }
  return {"gardner", box(2, 0, 6), evaluate, least};
}

double judged(const Task& task, const std::string& sampler_name, uint64_t seed, int trials) {
  const size_t objectives = task.evaluate(Values(6, 0.5)).objectives.size();
  tune::Study study({tune::read_space(task.space),
                     std::vector<tune::Direction>(objectives, tune::Direction::minimize),
                     seed,
                     trials,
                     {}});
  const auto sampler = tune::make_sampler(sampler_name);
  Pairs points;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < trials; ++i) {
    const int64_t id = study.start(tune::suggest_next(study, *sampler));
    const Outcome outcome = task.evaluate(study.trial(id).point);
    study.tell(id, tune::TrialState::complete, outcome.objectives, outcome.constraints);
    if (objectives == 2) points.emplace_back(outcome.objectives[0], outcome.objectives[1]);
    if (tune::Study::violation(study.trial(id)) == 0) best = std::min(best, outcome.objectives[0]);
  }
  return objectives == 2 ? volume_of(points) / task.ideal : best - task.ideal;
}

int run(const Options& options) {
  const auto wanted = split(options.at("tasks"));
  const int seeds = number(options, "seeds");
  for (const Task& task : {zdt(1), zdt(2), zdt(3), dtlz2(), bird(), gardner()}) {
    if (!wanted.empty() && std::ranges::find(wanted, task.name) == wanted.end()) continue;
    for (const std::string& sampler : split(options.at("samplers"))) {
      double sum = 0, worst = 0;
      for (int seed = 0; seed < seeds; ++seed) {
        const double one = judged(task, sampler, static_cast<uint64_t>(seed), number(options, "trials"));
        sum += one / seeds;
        const bool ratio = task.name.starts_with("zdt") || task.name == "dtlz2";
        worst = seed == 0 ? one : ratio ? std::min(worst, one) : std::max(worst, one);
      }
      std::printf("%-10s %-14s mean %9.5f   worst %9.5f\n", task.name.c_str(), sampler.c_str(), sum, worst);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  return sinew::bench::run_with(argc, argv, {{"samplers", "auto"}, {"tasks", ""}, {"seeds", "10"}, {"trials", "100"}},
                                sinew::bench::run);
}
