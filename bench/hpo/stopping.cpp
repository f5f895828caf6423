// Measures what pruners save and what they cost, on simulated learning curves. It prints two numbers: the trained
// epochs, as a fraction of the epochs that all trials have without pruning, and the normalised regret of the result (0:
// the best possible, 1: the median of random points).
//
//   hpo_stopping [--sampler auto] [--pruner auto] [--kind hard|mild|annealed] [--seeds 10] [--workers 1] [--variant 0]
//
// hard and mild: 81 trials of up to 81 epochs. Curves cross: with a high learning rate, a curve begins fast and ends
// worse; with one that is too high, it diverges. In the mild form, the ranks settle early.
// annealed: 30 trials of up to 27 epochs with a learning rate that falls to 0, as in real trainings. The noise is
// larger than the differences between good trials. The values improve at the end, which their beginning does not show.
// The result is the trial with the lowest reported value. Its regret is computed from the end of its curve without
// noise. Each worker trains one trial at a time, one epoch after another. The simulation uses the ask-tell protocol
// (docs/formats/ask-tell.md), so any program that uses the protocol gets the same results.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "functions.h"
#include "options.h"

namespace sinew::bench {
namespace {

using nlohmann::json;

constexpr double kLeast = 0.05;  // the final value of the best curve
constexpr const char* kSpace = R"([
  {"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
  {"name":"decay","type":"float","low":1e-7,"high":0.1,"log":true},
  {"name":"width","type":"int","low":16,"high":1024,"log":true},
  {"name":"drop","type":"float","low":0,"high":0.8}])";

struct Curves {
  std::string kind;
  int variant = 0;
  int epochs() const { return kind == "annealed" ? 27 : 81; }
  int trials() const { return kind == "annealed" ? 30 : 81; }

  double at(const json& params, int epoch) const {
    const double whole = smooth(params, epoch);
    if (kind != "annealed") return whole;
    // In the annealed form, the final values are closer together. The falling learning rate removes the noise, and the
    // error that the rate itself adds.
    const double rate = 0.5 * (1 + std::cos(std::numbers::pi * epoch / epochs()));
    RandomStream random(random_key({std::hash<std::string>{}(params.dump()), static_cast<uint64_t>(epoch)}));
    const double bounce = 0.04 * std::pow(10, 0.4 * (std::log10(params["lr"].get<double>()) + 2.5));
    return 0.12 + 0.2 * whole + rate * (std::min(bounce, 0.3) + 0.015 * random.normal()) + 0.0005 * random.normal();
  }

  double smooth(const json& params, int epoch) const {
    const bool mild = kind != "hard";
    const double lr = std::log10(params["lr"].get<double>()), decay = std::log10(params["decay"].get<double>());
    const double width = std::log2(params["width"].get<double>()), drop = params["drop"].get<double>();
    const auto moved = [&](int axis) { return 0.4 * shift("curves", variant, axis); };
    if (lr > moved(2) - 0.6) return 1 + 0.02 * epoch;
    const double end = kLeast + 0.05 * square(lr + 2.5 - moved(0)) + 0.008 * square(decay + 4 - moved(1)) +
                       0.006 * square(width - 8) + 0.15 * square(drop - 0.3);
    const double rate = 0.06 * std::pow(10, (mild ? 0.08 : 0.45) * (lr + 2.5)) * (1 - 0.4 * drop) *
                        std::exp2((mild ? -0.03 : -0.15) * (width - 8));
    return end + (1 - std::min(end, 0.95)) * std::exp(-2 * rate * epoch);
  }

  double median_of_random() const {
    const tune::Space space = tune::read_space(kSpace);
    RandomStream random(random_key({7}));
    std::vector<double> ends;
    std::vector<double> unit(space.size());
    for (int i = 0; i < 4001; ++i) {
      for (double& u : unit) u = random.uniform();
      ends.push_back(smooth(json::parse(tune::write_point(space, space.from_unit(unit))), epochs()));
    }
    std::ranges::nth_element(ends, ends.begin() + 2000);
    return ends[2000];
  }

 private:
  static double square(double x) { return x * x; }
};

struct Spent {
  double epochs = 0, regret = 0;
};

// Runs one study. The workers take turns, and each trains one epoch in its turn.
class Simulation {
 public:
  Simulation(const Options& options, const Curves& curves, int seed)
      : curves_(curves), workers_(number(options, "workers")) {
    say({{"cmd", "init"},
         {"sampler", options.at("sampler")},
         {"seed", seed},
         {"budget", curves.trials()},
         {"space", json::parse(kSpace)},
         {"pruner",
          {{"name", options.at("pruner")},
           {"min_resource", 1},
           {"max_resource", curves.epochs()},
           {"reduction_factor", 3}}}});
  }

  Spent run(double median) {
    bool busy = true;
    while (busy) {
      busy = false;
      for (Worker& worker : workers_) busy |= (worker.id >= 0 || begin(worker)) && train(worker);
    }
    return {static_cast<double>(epochs_) / (curves_.epochs() * curves_.trials()),
            (curves_.smooth(best_, curves_.epochs()) - kLeast) / (median - kLeast)};
  }

 private:
  struct Worker {
    int64_t id = -1;
    json params;
    int epoch = 0;
  };

  json say(const json& request) {
    const json answer = json::parse(*side_.answer(request.dump()));
    if (answer.contains("error"))
      throw Error("BENCH_BAD_REQUEST", answer["error"].get<std::string>(), answer.value("hint", ""));
    return answer;
  }

  bool begin(Worker& worker) {
    const json asked = say({{"cmd", "ask"}, {"no_new", begun_ >= curves_.trials()}});
    if (asked["id"].is_null()) return false;
    begun_ += asked.contains("resume_from") ? 0 : 1;
    worker = {asked["id"], asked["params"], asked.value("resume_from", 0)};
    return true;
  }

  bool train(Worker& worker) {
    ++epochs_;
    const double value = curves_.at(worker.params, ++worker.epoch);
    if (value < least_) least_ = value, best_ = worker.params;
    const json said = say({{"cmd", "report"}, {"id", worker.id}, {"step", worker.epoch}, {"value", value}});
    const bool paused = said.value("pause", false);
    if (worker.epoch >= curves_.epochs())
      say({{"cmd", "tell"}, {"id", worker.id}, {"value", value}});
    else if (said["stop"].get<bool>() && !paused)
      say({{"cmd", "tell"}, {"id", worker.id}, {"state", "pruned"}});
    else if (!paused)
      return true;
    worker.id = -1;
    return true;
  }

  const Curves& curves_;
  tune::AskTell side_;
  std::vector<Worker> workers_;
  int begun_ = 0, epochs_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  json best_;
};

int run(const Options& options) {
  const Curves curves{options.at("kind"), number(options, "variant")};
  if (curves.kind != "hard" && curves.kind != "mild" && curves.kind != "annealed")
    throw Error("BENCH_BAD_OPTION", "there is no kind of curves '" + curves.kind + "'",
                "use --kind hard, mild or annealed");
  const double median = curves.median_of_random();
  const int seeds = number(options, "seeds");
  Spent mean;
  for (int seed = 0; seed < seeds; ++seed) {
    const Spent spent = Simulation(options, curves, seed).run(median);
    mean.epochs += spent.epochs / seeds;
    mean.regret += spent.regret / seeds;
  }
  std::printf("epochs %.4f\nregret %.4f\n", mean.epochs, mean.regret);
  return 0;
}

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  return sinew::bench::run_with(
      argc, argv,
      {{"sampler", "auto"}, {"pruner", "auto"}, {"kind", "hard"}, {"seeds", "10"}, {"workers", "1"}, {"variant", "0"}},
      sinew::bench::run);
}
