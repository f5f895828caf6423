// Asynchronous successive halving with promotions. A trial that reaches a rung continues if it is among the best 1 /
// `reduction` of all trials that have reached the rung so far. Otherwise it pauses, and is promoted as soon as it is
// among them. A promoted trial resumes where it paused, so no step is trained twice.
//
// asha: Li, Jamieson, Rostamizadeh, Gonina, Hardt, Recht, Talwalkar, "A system for massively parallel hyperparameter
// tuning" (MLSys 2020). hyperband: Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar (JMLR 2018). Hyperband spreads trials
// over brackets that start on higher and higher rungs, in case early values mislead.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tune/makers.h"
#include "tune/rounding.h"

namespace sinew::tune {
namespace {

void check_rungs(const PrunerOptions& options) {
  if (!(options.max_resource > 0)) {
    throw Error("TUNE_BAD_PRUNER", "pruner '" + options.name + "' needs the number of steps of a whole trial",
                R"(for example "max_resource":81)");
  }
  if (!(options.min_resource > 0) || options.min_resource > options.max_resource) {
    throw Error("TUNE_BAD_PRUNER",
                "pruner '" + options.name + "': min_resource must be above 0 and at most max_resource",
                R"(for example "min_resource":1)");
  }
  if (!(options.reduction >= 2)) {
    throw Error("TUNE_BAD_PRUNER", "pruner '" + options.name + "': reduction_factor must be at least 2",
                R"(for example "reduction_factor":3)");
  }
}

// Returns the steps at which trials may pause. All are before the end of a training.
std::vector<double> rungs_of(const PrunerOptions& options) {
  std::vector<double> rungs;
  for (double rung = options.min_resource; rung < options.max_resource * (1 - 1e-9); rung *= options.reduction) {
    rungs.push_back(rung);
  }
  return rungs;
}

class RungPruner : public Pruner {
 public:
  RungPruner(const PrunerOptions& options, bool brackets) : options_(options), rungs_(rungs_of(options)) {
    if (rungs_.empty()) rungs_.push_back(options.max_resource);
    // Bracket b skips the first b rungs. As in Hyperband, all brackets get about the same number of steps: each bracket
    // gets 1 / `reduction` of the trials of the bracket before it.
    double share = 1;
    for (size_t b = 0; b < (brackets ? rungs_.size() : 1); ++b, share /= options.reduction) shares_.push_back(share);
  }

  bool pauses() const override { return true; }

  Verdict judge(const Study& study, const Trial& trial) override {
    if (!std::isfinite(study.loss(trial.reports.back())))
      return {PruneDecision::prune, "the value is not a finite number"};
    const auto rung = reached(trial, trial.reports.size());
    if (!rung || rung == reached(trial, trial.reports.size() - 1))
      return {PruneDecision::keep_running, "between two rungs"};
    if (trial.reports.back().step >= options_.max_resource) return {PruneDecision::keep_running, "at its end"};
    const auto best = best_of(study, bracket_of(trial.id), *rung);
    const bool among = std::ranges::find(best.ids, trial.id) != best.ids.end();
    return {among ? PruneDecision::keep_running : PruneDecision::pause, place(best, *rung, among),
            expected_end(study, trial)};
  }

  std::optional<Promotion> promote(const Study& study, bool no_new) override {
    for (size_t rung = rungs_.size(); rung-- > 0;) {
      for (size_t bracket = 0; bracket < shares_.size(); ++bracket) {
        const auto best = best_of(study, bracket, rung);
        for (const int64_t id : best.ids) {  // ordered, the best first
          const Trial& trial = study.trial(id);
          if (trial.state == TrialState::paused && reached(trial, trial.reports.size()) == rung)
            return Promotion{id, place(best, rung, true)};
        }
      }
    }
    return no_new ? last_resort(study) : std::nullopt;
  }

 private:
  // In a study with few trials, perhaps no trial is ever among the best of a rung. If no trial is complete or running,
  // and no new trial will start, the trial with the most steps continues.
  static std::optional<Promotion> last_resort(const Study& study) {
    const Trial* furthest = nullptr;
    for (const Trial& trial : study.trials()) {
      if (trial.state == TrialState::complete || trial.state == TrialState::running) return std::nullopt;
      if (trial.state != TrialState::paused || trial.reports.empty()) continue;
      const auto rank = [&](const Trial& one) {
        return std::pair(-one.reports.back().step, study.loss(one.reports.back()));
      };
      if (!furthest || rank(trial) < rank(*furthest)) furthest = &trial;
    }
    if (!furthest) return std::nullopt;
    return Promotion{furthest->id, "no trial is complete yet, and this one is the furthest"};
  }

  struct Best {
    std::vector<int64_t> ids;
    size_t arrived = 0;
  };

  // Estimates the final value of a trial: its value at this step plus the median change of the completed trials from
  // this step to their end. The estimate lets a sampler compare short trainings with long ones. Returns nullopt if
  // there are no completed trials to compare with.
  static std::optional<double> expected_end(const Study& study, const Trial& trial) {
    const Report& here = trial.reports.back();
    std::vector<double> changes;
    for (const int64_t id : study.observed()) {
      const Trial& other = study.trial(id);
      const auto then = std::ranges::lower_bound(other.reports, here.step, {}, &Report::step);
      if (other.state != TrialState::complete || then == other.reports.end()) continue;
      if (const double change = other.values[0] - then->value; std::isfinite(change)) changes.push_back(change);
    }
    if (changes.empty()) return std::nullopt;
    std::ranges::nth_element(changes, changes.begin() + static_cast<ptrdiff_t>(changes.size() / 2));
    return here.value + changes[changes.size() / 2];
  }

  // Assigns trials to brackets so that each bracket gets about its fraction (shares_) of the first n trials, for any n.
  size_t bracket_of(int64_t id) const {
    double total = 0;
    for (const double share : shares_) total += share;
    // The multiples of the golden ratio modulo 1 spread evenly, so each bracket gets trials in proportion to its share.
    double place = std::fmod((static_cast<double>(id) + 0.5) * 0.6180339887498949, 1.0) * total;
    for (size_t b = 0; b + 1 < shares_.size(); ++b) {
      if ((place -= shares_[b]) < 0) return b;
    }
    return shares_.size() - 1;
  }

  // The highest rung of its bracket that a trial reached within its first `reports` reports.
  std::optional<size_t> reached(const Trial& trial, size_t reports) const {
    if (reports == 0) return std::nullopt;
    const auto above = std::ranges::upper_bound(rungs_, trial.reports[reports - 1].step) - rungs_.begin();
    if (above <= static_cast<ptrdiff_t>(bracket_of(trial.id))) return std::nullopt;
    return static_cast<size_t>(above - 1);
  }

  // Returns the best 1 / `reduction` of the trials of a bracket that reached a rung, by their values there.
  Best best_of(const Study& study, size_t bracket, size_t rung) const {
    std::vector<std::pair<double, int64_t>> arrived;
    for (const Trial& trial : study.trials()) {
      if (trial.reports.empty() || trial.reports.back().step < rungs_[rung] || bracket_of(trial.id) != bracket)
        continue;
      const auto first = std::ranges::lower_bound(trial.reports, rungs_[rung], {}, &Report::step);
      arrived.emplace_back(study.loss(*first), trial.id);
    }
    std::ranges::sort(arrived);
    Best best{{}, arrived.size()};
    arrived.resize(static_cast<size_t>(static_cast<double>(arrived.size()) / options_.reduction));
    for (const auto& [loss, id] : arrived) best.ids.push_back(id);
    return best;
  }

  std::string place(const Best& best, size_t rung, bool among) const {
    return std::string(among ? "among" : "not among") + " the best " + std::to_string(best.ids.size()) + " of " +
           std::to_string(best.arrived) + " trials at step " + step_text(std::ceil(rungs_[rung]));
  }

  PrunerOptions options_;
  std::vector<double> rungs_;
  std::vector<double> shares_;  // relative number of trials in each bracket
};

}  // namespace

std::unique_ptr<Pruner> make_asha(const PrunerOptions& options) {
  check_rungs(options);
  return std::make_unique<RungPruner>(options, false);
}

std::unique_ptr<Pruner> make_hyperband(const PrunerOptions& options) {
  check_rungs(options);
  return std::make_unique<RungPruner>(options, true);
}

}  // namespace sinew::tune
