// The sampler of BOHB: densities of good and bad trials, compared at equal training length.
//
// Falkner, Klein, Hutter, "BOHB: robust and efficient hyperparameter optimization at scale" (ICML 2018). Values of
// short and long trainings are not comparable, so the model uses the longest length that enough trials have reached.
// One third of the suggestions are random. The densities are those of the TPE sampler (tpe_density.h). This sampler is
// made for studies whose pruner has rungs. If trials report no intermediate values, all ended trials count as equally
// long.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "tune/allowed.h"
#include "tune/makers.h"
#include "tune/rounding.h"
#include "tune/tpe_density.h"

namespace sinew::tune {
namespace {

constexpr double kRandomShare = 1.0 / 3, kGoodPart = 0.15;
constexpr int kDrawn = 64;
constexpr size_t kMoreThanParameters = 3;  // the model needs this many more trials than parameters
constexpr double kWhole = std::numeric_limits<double>::infinity();

// Returns the last step that a trial reported, or infinity for a complete or failed trial.
double length_of(const Trial& trial) {
  const bool ended = trial.state == TrialState::complete || trial.state == TrialState::failed;
  return ended ? kWhole : trial.reports.empty() ? 0 : trial.reports.back().step;
}

double loss_at(const Study& study, const Trial& trial, double step) {
  if (step == kWhole || trial.state == TrialState::failed) return study.loss(trial);
  const auto after = std::ranges::upper_bound(trial.reports, step, {}, &Report::step);
  return after == trial.reports.begin() ? study.loss(trial) : study.loss(*(after - 1));
}

class BohbSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const Space& space = study.space();
    RandomStream random = study.random("bohb");
    std::vector<double> lengths;
    for (const Trial& trial : study.trials()) {
      if (length_of(trial) > 0) lengths.push_back(length_of(trial));
    }
    const size_t needed = space.size() + kMoreThanParameters;
    if (lengths.size() < needed || random.uniform() < kRandomShare) {
      Point point = first_allowed(space, kAllowedDraws, [&] { return random_point(space, random); });
      return {std::move(point), "bohb", "drawn at random, like a third of all suggestions", {}};
    }
    std::ranges::nth_element(lengths, lengths.begin() + static_cast<std::ptrdiff_t>(needed - 1), std::greater{});
    return modelled(study, lengths[needed - 1], random);
  }

 private:
  static Suggestion modelled(const Study& study, double step, RandomStream& random) {
    const Space& space = study.space();
    std::vector<std::tuple<double, double, int32_t>> known;  // violation, loss and id
    Columns columns(space.size());
    for (const Trial& trial : study.trials()) {
      const auto unit = space.to_unit(trial.point);
      for (size_t d = 0; d < unit.size(); ++d) columns[d].push_back(static_cast<float>(unit[d]));
      if (length_of(trial) >= step && length_of(trial) > 0)
        known.emplace_back(Study::violation(trial), loss_at(study, trial, step), static_cast<int32_t>(trial.id));
    }
    std::ranges::sort(known);
    const auto good = std::clamp(static_cast<size_t>(std::ceil(kGoodPart * static_cast<double>(known.size()))),
                                 size_t{2}, known.size() - 1);
    std::vector<int32_t> good_rows, bad_rows;
    for (size_t k = 0; k < known.size(); ++k) (k < good ? good_rows : bad_rows).push_back(std::get<int32_t>(known[k]));
    const TpeDensity low(space, columns, good_rows, std::vector<double>(good_rows.size(), 1), 1);
    const TpeDensity high(space, columns, bad_rows, std::vector<double>(bad_rows.size(), 1), 1);
    Point best;
    double most = -std::numeric_limits<double>::infinity();
    for (int i = 0; i < kDrawn; ++i) {
      Point point = first_allowed(space, kAllowedDraws, [&] { return low.draw(space, random); });
      const auto unit = space.to_unit(point);
      const std::vector<float> at(unit.begin(), unit.end());
      const double score = low.log_density(space, at) - high.log_density(space, at);
      if (!best.empty() && score <= most) continue;
      most = score;
      best = std::move(point);
    }
    const std::string when = step == kWhole ? "at their end" : "at step " + step_text(step);
    return {std::move(best),
            "bohb",
            "where the best " + std::to_string(good) + " of " + std::to_string(known.size()) + " trials " + when +
                " are dense and the others are not",
            {}};
  }
};

}  // namespace

std::unique_ptr<Sampler> make_bohb() {
  return std::make_unique<BohbSampler>();
}

}  // namespace sinew::tune
