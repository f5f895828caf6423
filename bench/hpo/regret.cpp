// Measures the normalised regret of samplers on each function: (mean best value - minimum) / (median best value of
// random search - minimum).
//
//   hpo_regret --samplers auto,tpe [--set suite|own] [--functions a,b] [--seeds 20] [--trials 100] [--variant 0]
//              [--workers 1] [--seed0 0] [--child COMMAND] [--scale 0] [--earlier none|moved|mirrored]
//
// 0 is perfect; 1 is the result of random search with the same number of trials. With several workers, trials take
// random times, and a suggestion does not know the values of running trials. A sampler @NAME is the sampler NAME of the
// program that --child starts (child.h). --scale N compares with random search of N trials instead. --earlier gives
// each study five finished studies of 100 trials. In `moved`, these studies are of the same function, shifted in five
// other ways. In `mirrored`, they are of its mirror images, which are unrelated. The last lines show the mean over all
// functions, and the seconds spent on suggestions and values.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <queue>

#include "child.h"
#include "functions.h"
#include "options.h"

namespace sinew::bench {
namespace {

// A study with one sampler, which belongs to this program or to another one.
class Contestant {
 public:
  Contestant(const Function& function, const std::string& sampler, uint64_t seed, int trials, Child* child,
             std::vector<tune::EarlierStudy> earlier = {})
      : study_({tune::read_space(function.space), {tune::Direction::minimize}, seed, trials, {}, std::move(earlier)}) {
    if (!sampler.starts_with('@')) {
      sampler_ = tune::make_sampler(sampler);
      return;
    }
    if (child == nullptr)
      throw Error("BENCH_BAD_OPTION", "the sampler '" + sampler + "' belongs to another program",
                  "name the program: --child \"python optimiser.py\"");
    child_ = child;
    child_->begin(sampler.substr(1), function.space, seed, trials);
  }

  int64_t ask() {
    if (child_ == nullptr) return study_.start(tune::suggest_next(study_, *sampler_));
    const Child::Asked asked = child_->ask(study_.space());
    theirs_.push_back(asked.id);
    return study_.start({asked.point, "child", "", {}});
  }

  void tell(int64_t id, double value) {
    if (child_ != nullptr) child_->tell(theirs_[static_cast<size_t>(id)], value);
    study_.tell(id, tune::TrialState::complete, {value});
  }

  const tune::Study& study() const { return study_; }

 private:
  tune::Study study_;
  std::unique_ptr<tune::Sampler> sampler_;
  Child* child_ = nullptr;
  std::vector<int64_t> theirs_;  // the trial ids of the other program
};

double best_of(const Function& function, Contestant contestant, uint64_t seed, int trials, int variant, int workers) {
  const tune::Study& study = contestant.study();
  RandomStream random(random_key({seed, 4242}));
  using Event = std::pair<double, int64_t>;  // the time when a trial ends, and its id
  std::priority_queue<Event, std::vector<Event>, std::greater<>> running;
  const auto start = [&](double now) {
    const int64_t id = contestant.ask();
    running.emplace(now + random.uniform(0.5, 1.5), id);
  };
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::min(workers, trials); ++i) start(0);
  while (!running.empty()) {
    const auto [now, id] = running.top();
    running.pop();
    const double value = function.value(Values(study.space(), study.trial(id).point), variant);
    best = std::min(best, value);
    contestant.tell(id, value);
    if (study.next_id() < trials) start(now);
  }
  return best;
}

// Returns the point, reflected at the centre of the space.
tune::Point mirrored(const tune::Space& space, const tune::Point& point) {
  auto unit = space.to_unit(point);
  for (double& u : unit) u = 1 - u;
  return space.from_unit(unit);
}

// Returns five studies of a hundred trials each, made by the default sampler, or none if `kind` is "none".
std::vector<tune::EarlierStudy> earlier_of(const Function& function, const std::string& kind, uint64_t seed,
                                           int variant) {
  std::vector<tune::EarlierStudy> all;
  for (int k = 1; kind != "none" && k <= 5; ++k) {
    const uint64_t own_seed = 1000 + seed * 5 + static_cast<uint64_t>(k);
    tune::Study study({tune::read_space(function.space), {tune::Direction::minimize}, own_seed, 100, {}, {}});
    const auto sampler = tune::make_sampler("auto");
    for (int i = 0; i < 100; ++i) {
      const int64_t id = study.start(tune::suggest_next(study, *sampler));
      const tune::Point& point = study.trial(id).point;
      const tune::Point there = kind == "moved" ? point : mirrored(study.space(), point);
      study.tell(id, tune::TrialState::complete, {function.value(Values(study.space(), there), variant + k)});
    }
    all.push_back(tune::make_earlier_study(study.space(), study, std::to_string(k)));
  }
  return all;
}

std::vector<double> bests(const Function& function, const std::string& sampler, const Options& options, int seeds,
                          int workers, Child* child) {
  std::vector<double> all;
  const int first = number(options, "seed0"), trials = number(options, "trials");
  for (int seed = first; seed < first + seeds; ++seed) {
    const auto key = static_cast<uint64_t>(seed);
    const int variant = number(options, "variant");
    auto earlier = earlier_of(function, sampler == "random" ? "none" : options.at("earlier"), key, variant);
    all.push_back(best_of(function, Contestant(function, sampler, key, trials, child, std::move(earlier)), key, trials,
                          variant, workers));
  }
  return all;
}

int run(const Options& options) {
  const auto& functions = options.at("set") == "own" ? own_functions() : suite_functions();
  const auto wanted = split(options.at("functions"));
  const auto samplers = split(options.at("samplers"));
  std::unique_ptr<Child> child;
  if (!options.at("child").empty()) child = std::make_unique<Child>(options.at("child"));
  std::map<std::string, std::vector<double>> regrets;
  std::map<std::string, double> seconds;
  std::printf("%-12s", "");
  for (const auto& sampler : samplers) std::printf(" %12s", sampler.c_str());
  std::puts("");
  for (const Function& function : functions) {
    if (!wanted.empty() && std::ranges::find(wanted, function.name) == wanted.end()) continue;
    Options scale = options;
    if (number(options, "scale") > 0) scale["trials"] = options.at("scale");
    auto random = bests(function, "random", scale, 101, 1, nullptr);
    std::ranges::nth_element(random, random.begin() + 50);
    const double whole = random[50] - function.minimum;
    std::printf("%-12s", function.name.c_str());
    for (const auto& sampler : samplers) {
      const auto begun = std::chrono::steady_clock::now();
      double sum = 0;
      const auto all =
          bests(function, sampler, options, number(options, "seeds"), number(options, "workers"), child.get());
      for (const double best : all) sum += (best - function.minimum) / whole / static_cast<double>(all.size());
      seconds[sampler] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      regrets[sampler].push_back(sum);
      std::printf(" %12.4f", sum);
      std::fflush(stdout);
    }
    std::puts("");
  }
  std::printf("%-12s", "mean");
  for (const auto& sampler : samplers) {
    double sum = 0;
    for (const double regret : regrets[sampler]) sum += regret / static_cast<double>(regrets[sampler].size());
    std::printf(" %12.4f", sum);
  }
  std::printf("\n%-12s", "seconds");
  for (const auto& sampler : samplers) std::printf(" %12.2f", seconds[sampler]);
  std::puts("");
  return 0;
}

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  return sinew::bench::run_with(argc, argv,
                                {{"samplers", "random,sobol,tpe"},
                                 {"set", "suite"},
                                 {"functions", ""},
                                 {"seeds", "20"},
                                 {"trials", "100"},
                                 {"variant", "0"},
                                 {"workers", "1"},
                                 {"seed0", "0"},
                                 {"scale", "0"},
                                 {"earlier", "none"},
                                 {"child", ""}},
                                sinew::bench::run);
}
