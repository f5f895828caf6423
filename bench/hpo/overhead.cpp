// Measures the cost of a suggestion: the milliseconds of one ask and one tell after a given number of trials, in a
// mixed space of ten parameters.
//
//   hpo_overhead --samplers tpe,gp --trials 100,500,1000 [--asks 20]
//
// Prints the median over the asks. It counts the processor time of this process, so other programs on the machine do
// not matter. The trials before the asks are random points.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/error.h"
#include "options.h"

namespace sinew::bench {
namespace {

constexpr const char* kSpace = R"([{"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
  {"name":"wd","type":"float","low":1e-7,"high":1e-1,"log":true},{"name":"drop","type":"float","low":0,"high":0.7},
  {"name":"mix","type":"float","low":0,"high":1},{"name":"warm","type":"float","low":0,"high":0.3},
  {"name":"layers","type":"int","low":1,"high":8},{"name":"width","type":"int","low":16,"high":1024,"log":true},
  {"name":"batch","type":"int","low":16,"high":512,"log":true},
  {"name":"act","type":"cat","choices":["relu","gelu","tanh","silu"]},
  {"name":"opt","type":"cat","choices":["sgd","adam","rmsprop"]}])";

double value(const tune::Space& space, const tune::Point& point) {
  double sum = 0;
  for (size_t i = 0; i < space.size(); ++i) {
    const double off = space.unit_at(i, point[i]) - 0.3 - 0.05 * static_cast<double>(i);
    sum += space[i].ordered() ? off * off : 0.1 * point[i];
  }
  return sum;
}

double milliseconds(const std::string& sampler_name, int trials, int asks) {
  tune::Study study({tune::read_space(kSpace), {tune::Direction::minimize}, 1, trials + asks, {}});
  RandomStream random(random_key({7}));
  std::vector<double> unit(study.space().size());
  const auto tell = [&](int64_t id) {
    study.tell(id, tune::TrialState::complete, {value(study.space(), study.trial(id).point)});
  };
  for (int i = 0; i < trials; ++i) {
    for (double& u : unit) u = random.uniform();
    tell(study.start({study.space().from_unit(unit), "random", "", {}}));
  }
  const auto sampler = tune::make_sampler(sampler_name);
  std::vector<double> times;
  for (int i = 0; i <= asks; ++i) {
    const std::clock_t begun = std::clock();
    tell(study.start(tune::suggest_next(study, *sampler)));
    if (i > 0)
      times.push_back(1e3 * static_cast<double>(std::clock() - begun) /
                      CLOCKS_PER_SEC);  // the first ask does not count, because it reads all earlier trials
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

int run(const Options& options) {
  for (const std::string& sampler : split(options.at("samplers"))) {
    for (const std::string& trials : split(options.at("trials"))) {
      const double took = milliseconds(sampler, std::atoi(trials.c_str()), number(options, "asks"));
      std::printf("%-14s %8s trials %10.3f ms\n", sampler.c_str(), trials.c_str(), took);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  return sinew::bench::run_with(argc, argv, {{"samplers", "tpe,gp"}, {"trials", "100,500,1000"}, {"asks", "20"}},
                                sinew::bench::run);
}
