// Normalised regret of samplers: (mean best - minimum) / (median best of random search - minimum), per function.
//
//   hpo_regret --samplers auto,tpe [--set suite|own] [--functions a,b] [--seeds 20] [--trials 100] [--variant 0]
//              [--workers 1] [--seed0 0]
//
// 0 is perfect, 1 is what random search gets with the same number of trials. With several workers trials take random
// times, and a suggestion does not know those that still run.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <queue>

#include "base/error.h"
#include "functions.h"

namespace sinew::bench {
namespace {

struct Options {
  std::map<std::string, std::string> words = {{"samplers", "random,sobol,tpe"},
                                              {"set", "suite"},
                                              {"functions", ""},
                                              {"seeds", "20"},
                                              {"trials", "100"},
                                              {"variant", "0"},
                                              {"workers", "1"},
                                              {"seed0", "0"}};
  int number(const char* name) const { return std::atoi(words.at(name).c_str()); }
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

double best_of(const Function& function, const std::string& sampler_name, uint64_t seed, int trials, int variant,
               int workers) {
  tune::Study study({tune::read_space(function.space), {tune::Direction::minimize}, seed, trials});
  const auto sampler = tune::make_sampler(sampler_name);
  RandomStream random(random_key({seed, 4242}));
  using Event = std::pair<double, int64_t>;  // when a trial ends
  std::priority_queue<Event, std::vector<Event>, std::greater<>> running;
  const auto start = [&](double now) {
    const int64_t id = study.start(tune::suggest_next(study, *sampler));
    running.emplace(now + random.uniform(0.5, 1.5), id);
  };
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::min(workers, trials); ++i) start(0);
  while (!running.empty()) {
    const auto [now, id] = running.top();
    running.pop();
    const double value = function.value(Values(study.space(), study.trial(id).point), variant);
    best = std::min(best, value);
    study.tell(id, tune::TrialState::complete, {value});
    if (study.next_id() < trials) start(now);
  }
  return best;
}

std::vector<double> bests(const Function& function, const std::string& sampler, const Options& options, int seeds,
                          int workers) {
  std::vector<double> all;
  const int first = options.number("seed0");
  for (int seed = first; seed < first + seeds; ++seed) {
    all.push_back(best_of(function, sampler, static_cast<uint64_t>(seed), options.number("trials"),
                          options.number("variant"), workers));
  }
  return all;
}

int run(const Options& options) {
  const auto& functions = options.words.at("set") == "own" ? own_functions() : suite_functions();
  const auto wanted = split(options.words.at("functions"));
  const auto samplers = split(options.words.at("samplers"));
  std::map<std::string, std::vector<double>> regrets;
  std::map<std::string, double> seconds;
  std::printf("%-12s", "");
  for (const auto& sampler : samplers) std::printf(" %12s", sampler.c_str());
  std::puts("");
  for (const Function& function : functions) {
    if (!wanted.empty() && std::ranges::find(wanted, function.name) == wanted.end()) continue;
    auto random = bests(function, "random", options, 101, 1);
    std::ranges::nth_element(random, random.begin() + 50);
    const double scale = random[50] - function.minimum;
    std::printf("%-12s", function.name.c_str());
    for (const auto& sampler : samplers) {
      const auto begun = std::chrono::steady_clock::now();
      double sum = 0;
      const auto all = bests(function, sampler, options, options.number("seeds"), options.number("workers"));
      for (const double best : all) sum += (best - function.minimum) / scale / static_cast<double>(all.size());
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
  sinew::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i][0] == '-' && argv[i][1] == '-' ? argv[i] + 2 : "";
    if (!options.words.contains(name)) return std::fprintf(stderr, "no option %s\n", argv[i]), 2;
    options.words[name] = argv[i + 1];
  }
  try {
    return sinew::bench::run(options);
  } catch (const sinew::Error& error) {
    return std::fprintf(stderr, "%s\n  try: %s\n", error.what(), error.hint.c_str()), 2;
  }
}
