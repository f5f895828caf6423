// The Gaussian process sampler: suggests the point that maximises an acquisition function of the surrogate.
//
// With one objective, the acquisition function is the log expected improvement over the best value (Ament et al. 2023),
// plus the log probability of feasibility if there are constraints (Gardner et al. 2014). With several objectives it is
// the log expected hypervolume improvement. Running trials count as if they had ended with values drawn from the
// Gaussian process, and the next suggestion must also improve on these values (fantasies, as in Snoek, Larochelle,
// Adams, "Practical Bayesian optimization", NIPS 2012, section 3.2; one draw for each suggestion). The first few trials
// are Sobol points. Sometimes the sampler searches only among points with one choice of a category that is not yet the
// best choice (rising_choices.h). It does so every few suggestions, and whenever the whole space promises a negligible
// improvement.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number_text.h"
#include "tune/allowed.h"
#include "tune/gp_acquisition.h"
#include "tune/gp_surrogate.h"
#include "tune/makers.h"
#include "tune/multi_objective.h"
#include "tune/rising_choices.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kCentres = 5, kMostFront = 40;
constexpr int64_t kChoiceTurn = 5;  // every n-th suggestion searches within a choice that is not the best so far

// Sets how many points the search scores. It scores fewer if the Gaussian process knows more points, because each score
// then costs more.
SearchOptions effort(Index points) {
  SearchOptions options;
  options.candidates = points <= 60 ? 400 : points <= 150 ? 250 : 200;
  options.climbs = points <= 60 ? 4 : points <= 150 ? 3 : 2;
  return options;
}

// Returns the options of a search around the first few points of `order`.
SearchOptions around(const Surrogate& model, const std::vector<Index>& order) {
  SearchOptions options = effort(model.objectives[0].size());
  for (size_t k = 0; k < std::min(kCentres, order.size()); ++k) options.centres.push_back(model.row(order[k]));
  return options;
}

class GpSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const size_t d = study.space().size();
    const std::optional<Surrogate> model = fit_surrogate(study, std::min<size_t>(4 + d / 2, 10));
    if (!model) return of_design(study, "a space-filling design to start with");
    return study.objectives() == 1 ? of_one(study, *model) : of_several(study, *model);
  }

 private:
  Suggestion of_design(const Study& study, const std::string& why) {
    return {design_.next_point(study), "sobol", why, {}};
  }

  Suggestion of_one(const Study& study, const Surrogate& model) {
    const GaussianProcess& process = model.objectives[0];
    const VectorXd smoothed = process.smoothed();
    std::vector<Index> order(static_cast<size_t>(model.known));
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::stable_sort(order, {}, [&](Index i) {
      return std::pair(Study::violation(*model.trials[static_cast<size_t>(i)]), smoothed[i]);
    });
    const SearchOptions options = around(model, order);
    const bool some_feasible = model.feasible(order[0]);
    double best = smoothed[order[0]];
    for (const auto& outcome : model.feasible_fantasies()) best = std::min(best, outcome[0]);
    const LogExpectedImprovement improvement(process, best);
    const LogFeasibility feasibility(model.constraints, some_feasible ? &improvement : nullptr);
    const AcquisitionFunction& score =
        model.constraints.empty() ? static_cast<const AcquisitionFunction&>(improvement) : feasibility;
    Suggestion suggestion = found(
        study, model, score, options,
        some_feasible ? "the largest improvement is expected here" : "most likely to be feasible; no trial is yet");
    if (suggestion.by != "gp" || !model.constraints.empty()) return suggestion;
    suggestion.gain = gain_of(study, model, improvement, suggestion.point);
    const bool little = suggestion.gain && *suggestion.gain < kLittleGain;
    if (!little && study.next_id() % kChoiceTurn != 0) return suggestion;
    for (const Choice& choice : rising_choices(study)) {
      if (auto behind = within(study, model, choice, smoothed)) return *std::move(behind);
    }
    return suggestion;
  }

  // Suggests a point that should improve on the best point with one choice. Returns nullopt if the surrogate knows no
  // trial with this choice, or if every candidate was tried.
  std::optional<Suggestion> within(const Study& study, const Surrogate& model, const Choice& choice,
                                   const VectorXd& smoothed) {
    std::vector<Index> order;
    for (Index i = 0; i < model.known; ++i) {
      if (choice.of(model.trials[static_cast<size_t>(i)]->point)) order.push_back(i);
    }
    if (order.empty()) return std::nullopt;
    std::ranges::stable_sort(order, {}, [&](Index i) { return smoothed[i]; });
    SearchOptions options = around(model, order);
    options.within = choice;
    const LogExpectedImprovement improvement(model.objectives[0],
                                             best_within(study, model, choice, smoothed[order[0]]));
    RandomStream random = study.random("gp choice");
    const auto best = maximise_acquisition(study, improvement, random, options);
    if (!best) return std::nullopt;
    return Suggestion{best->point, "gp", name_of(study.space(), choice) + " is behind, and may yet turn out best",
                      model.sampler_state};
  }

  static std::string name_of(const Space& space, const Choice& choice) {
    const Parameter& parameter = space[choice.parameter];
    return parameter.name + ": " + parameter.choices[static_cast<size_t>(choice.value)];
  }

  // The best value with a choice, including the fantasies of running trials with this choice.
  static double best_within(const Study& study, const Surrogate& model, const Choice& choice, double best) {
    const GaussianProcess& process = model.objectives[0];
    const auto axis = static_cast<Index>(choice.parameter);
    const double unit = study.space().unit_at(choice.parameter, choice.value);
    for (Index i = process.size() - model.fantasies; i < process.size(); ++i) {
      if (process.point(i)[axis] == unit) best = std::min(best, process.value(i));
    }
    return best;
  }

  // Returns the expected improvement of a point as a fraction of the lead: the distance from the best loss to the
  // median loss. Returns nullopt if there is no lead. The acquisition function gives the improvement in warped units.
  // Near the best value the warp is nearly linear, so its slope there converts warped units to losses.
  static std::optional<double> gain_of(const Study& study, const Surrogate& model,
                                       const LogExpectedImprovement& improvement, const Point& point) {
    std::vector<std::pair<double, double>> known;  // loss and warped value
    for (Index i = 0; i < model.known; ++i) {
      const auto loss = study.known_loss(*model.trials[static_cast<size_t>(i)]);
      if (loss && std::isfinite(*loss)) known.emplace_back(*loss, model.objectives[0].value(i));
    }
    std::ranges::sort(known);
    const double lead = known.empty() ? 0 : known[known.size() / 2].first - known[0].first;
    if (!(lead > 0)) return std::nullopt;
    const auto other = std::ranges::find_if(known, [&](const auto& pair) { return pair.second > known[0].second; });
    if (other == known.end()) return std::nullopt;
    const double slope = (other->first - known[0].first) / (other->second - known[0].second);
    VectorXd slopes;
    return std::exp(improvement.at(row_of(study.space(), point), slopes)) * slope / lead;
  }

  Suggestion of_several(const Study& study, const Surrogate& model) {
    const size_t m = study.objectives();
    std::vector<Objectives> known;
    std::vector<Index> rows;
    std::vector<VectorXd> smoothed;
    for (const GaussianProcess& process : model.objectives) smoothed.push_back(process.smoothed());
    for (Index i = 0; i < model.known; ++i) {
      if (!model.feasible(i)) continue;
      Objectives point(m);
      for (size_t k = 0; k < m; ++k) point[k] = smoothed[k][i];
      known.push_back(std::move(point));
      rows.push_back(i);
    }
    SearchOptions options = effort(model.objectives[0].size());
    if (known.empty()) {
      const LogFeasibility feasibility(model.constraints, nullptr);
      return found(study, model, feasibility, options, "most likely to be feasible; no trial is yet");
    }
    for (std::vector<double>& outcome : model.feasible_fantasies()) known.push_back(std::move(outcome));
    std::vector<size_t> front = front_of(known);
    for (const size_t i : front) {
      if (i < rows.size()) options.centres.push_back(model.row(rows[i]));
    }
    // With three or more objectives, the number of boxes grows with a power of the size of the front. An evenly chosen
    // subset then represents a large front.
    const size_t most = m <= 2 ? front.size() : m == 3 ? kMostFront : kMostFront / 3;
    std::vector<Objectives> shown;
    for (size_t i = 0; i < std::min(most, front.size()); ++i)
      shown.push_back(known[front[i * front.size() / std::min(most, front.size())]]);
    const LogHypervolumeImprovement gain(model.objectives, free_boxes(shown, reference(known, front, m)));
    const LogFeasibility feasibility(model.constraints, &gain);
    return found(study, model, feasibility, options, "the largest hypervolume improvement is expected here");
  }

  // The reference point. In every objective it lies a tenth of the front's extent beyond the front's worst value. If
  // the front has no extent, it is the worst value of all feasible points.
  static Objectives reference(const std::vector<Objectives>& known, const std::vector<size_t>& front, size_t m) {
    Objectives worst(m);
    for (size_t k = 0; k < m; ++k) {
      double low = known[front[0]][k], high = low, highest = low;
      for (const size_t i : front) low = std::min(low, known[i][k]), high = std::max(high, known[i][k]);
      for (const Objectives& point : known) highest = std::max(highest, point[k]);
      worst[k] = high > low ? high + 0.1 * (high - low) : highest;
    }
    return worst;
  }

  Suggestion found(const Study& study, const Surrogate& model, const AcquisitionFunction& score,
                   const SearchOptions& options, const std::string& why) {
    RandomStream random = study.random("gp");
    const auto best = maximise_acquisition(study, score, random, options);
    if (!best) return of_design(study, "every candidate was tried: a space-filling point instead");
    return {best->point, "gp", why + " (log acquisition " + rounded_text(best->score, 3) + ")", model.sampler_state};
  }

  SobolDesign design_{"gp"};
};

}  // namespace

std::unique_ptr<Sampler> make_gp() {
  return std::make_unique<GpSampler>();
}

}  // namespace sinew::tune
