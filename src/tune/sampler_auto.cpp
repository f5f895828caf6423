// The default sampler: several samplers on the same trial history. The more often a sampler's suggestions improve the
// best value, the more often it is used.
//
// For up to a few hundred trials the Gaussian process is the best sampler on every kind of space (measured in
// bench/hpo). The other samplers help where it fails. The trust region searches in detail where a model of the whole
// space misleads, TPE makes different errors, and local changes depend on no model. Each suggestion draws one of the
// samplers. The probabilities follow how often the recent suggestions of each sampler improved the best value. A
// minimum probability keeps every sampler in use, and limits the harm that a single sampler can do. Near the end of the
// budget, the study cannot use what the other samplers explore, so only the Gaussian process suggests. Beyond a few
// hundred trials the Gaussian process costs too much. TPE then takes over, or CMA-ES if there are many numeric
// parameters.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "tune/makers.h"

namespace sinew::tune {
namespace {

constexpr size_t kMostForProcess = 400;  // from this many known trials on, the Gaussian process is not used
constexpr size_t kFewestKnown = 15;      // before this many known trials, only the Gaussian process is used
constexpr size_t kManyNumbers = 20;      // CMA-ES is used from this many numeric parameters on
constexpr double kFloor = 0.06;          // the minimum probability of each sampler
constexpr double kForLearning = 0.75;    // the samplers compete until this fraction of the planned trials has started
constexpr size_t kRecent = 24;           // this many of the most recently ended trials decide the probabilities

struct Arm {
  const char* name;
  std::unique_ptr<Sampler> (*make)();
  double share;  // relative probability before the rates of improvement are known
};

class AutoSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    size_t known = study.observed().size();
    for (const int64_t id : study.open()) known += study.known_loss(study.trial(id)).has_value();
    const auto arms = arms_for(study, known);
    const auto shares = earned(study, arms);
    double lot = study.random("auto").uniform();
    size_t chosen = 0;
    while (chosen + 1 < arms.size() && lot >= shares[chosen]) lot -= shares[chosen++];
    return sampler(arms[chosen]).suggest(study);
  }

 private:
  static std::vector<Arm> arms_for(const Study& study, size_t known) {
    const bool numeric = std::ranges::all_of(std::views::iota(size_t{0}, study.space().size()), [&](size_t i) {
      return study.space()[i].ordered() && study.space()[i].conditions.empty();
    });
    if (known < kFewestKnown) return {{"gp", make_gp, 1}};  // it starts with a space-filling design
    if (known < kMostForProcess) {
      if (study.objectives() > 1) return {{"gp", make_gp, 0.9}, {"tpe", make_tpe, 0.1}};
      if (near_its_end(study)) return {{"gp", make_gp, 1}};
      return {{"gp", make_gp, 0.6},
              {"trust_region", make_trust_region, 0.25},
              {"tpe", make_tpe, 0.08},
              {"nearby", make_nearby, 0.07}};
    }
    if (study.objectives() > 1) return {{"tpe", make_tpe, 1}};
    if (numeric && study.space().size() >= kManyNumbers)
      return {{"cmaes", make_cmaes, 0.7}, {"tpe", make_tpe, 0.2}, {"nearby", make_nearby, 0.1}};
    return {{"tpe", make_tpe, 0.7}, {"nearby", make_nearby, 0.3}};
  }

  static bool near_its_end(const Study& study) {
    const auto budget = static_cast<double>(study.options().budget);
    return budget > 0 && static_cast<double>(study.started()) >= kForLearning * budget;
  }

  // Returns the probability of each sampler. It is the initial share times the rate of recent improvements, normalised,
  // and at least kFloor.
  static std::vector<double> earned(const Study& study, const std::vector<Arm>& arms) {
    const auto& observed = study.observed();
    const size_t recent = observed.size() - std::min(observed.size(), kRecent);
    std::vector<double> improved(arms.size(), 1), asked(arms.size(), 4);
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < observed.size(); ++i) {
      const Trial& trial = study.trial(observed[i]);
      const bool better = Study::violation(trial) <= 0 && study.loss(trial) < best;
      if (better) best = study.loss(trial);
      for (size_t a = 0; a < arms.size() && i >= recent; ++a) {
        if (trial.by != arms[a].name) continue;
        asked[a] += 1;
        improved[a] += better;
      }
    }
    std::vector<double> shares;
    double total = 0;
    for (size_t a = 0; a < arms.size(); ++a) {
      shares.push_back(arms[a].share * (study.objectives() == 1 ? improved[a] / asked[a] : 1));
      total += shares.back();
    }
    for (double& share : shares) share = kFloor + (1 - kFloor * static_cast<double>(arms.size())) * share / total;
    return shares;
  }

  Sampler& sampler(const Arm& arm) {
    for (auto& [name, made] : made_) {
      if (name == arm.name) return *made;
    }
    return *made_.emplace_back(arm.name, arm.make()).second;
  }

  std::vector<std::pair<std::string, std::unique_ptr<Sampler>>> made_;
};

}  // namespace

std::unique_ptr<Sampler> make_auto() {
  return std::make_unique<AutoSampler>();
}

}  // namespace sinew::tune
