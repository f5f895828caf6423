// The tree-structured Parzen estimator: suggests points where good trials are dense and bad ones are not.
//
// Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization" (NIPS 2011), multivariate, with the
// better settings that Watanabe measured (arXiv 2304.11127). The good trials are the best 12 %, at most 25, weighted by
// how far they are below the rest. Running trials count as bad, so that parallel suggestions keep apart (constant
// liar). With several objectives, the good trials are those that the fewest others dominate.
//
// To bound the cost of a suggestion, the sampler uses at most kMostBad bad trials: the newest, and an even sample of
// the older ones.
#include <algorithm>
#include <cmath>

#include "tune/allowed.h"
#include "tune/makers.h"
#include "tune/ranking.h"
#include "tune/tpe_density.h"

namespace sinew::tune {
namespace {

constexpr int64_t kStart = 10;  // trials of a space-filling design before the model is used
constexpr int kCandidates = 24;
constexpr double kGoodShare = 0.12;
constexpr size_t kMostGood = 25;
constexpr size_t kMostBad = 512;  // half of them are the newest

class TpeSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    ranking_.follow(study);
    if (static_cast<int64_t>(ranking_.order().size()) < kStart)
      return {design_.next_point(study), "tpe", "one of the first trials: a space-filling point", {}};
    follow(study);
    const size_t n = ranking_.order().size();
    const size_t good = std::min(kMostGood, static_cast<size_t>(std::ceil(kGoodShare * static_cast<double>(n))));
    const std::vector<int32_t> good_rows(ranking_.order().begin(),
                                         ranking_.order().begin() + static_cast<ptrdiff_t>(good));
    const auto weights = good_weights(study, good);
    double mean = 0;
    for (const double weight : weights) mean += weight / static_cast<double>(good);
    const Space& space = study.space();
    const TpeDensity low(space, columns_, good_rows, weights, mean);
    const auto bad_rows = choose_bad(study, good);
    const TpeDensity high(space, columns_, bad_rows, std::vector<double>(bad_rows.size(), 1), 1);
    return best_candidate(study, low, high, good);
  }

 private:
  // Adds the points of new trials to the columns, by id. The point of a trial never changes.
  void follow(const Study& study) {
    columns_.resize(study.space().size());
    for (size_t id = columns_[0].size(); id < study.trials().size(); ++id) {
      const auto unit = study.space().to_unit(study.trials()[id].point);
      for (size_t d = 0; d < unit.size(); ++d) columns_[d].push_back(static_cast<float>(unit[d]));
    }
  }

  // Returns a weight for each good trial: how far its loss is below the best loss of the rest. All weights are equal if
  // these differences are all 0 or not all finite.
  std::vector<double> good_weights(const Study& study, size_t good) const {
    std::vector<double> weights(good, 1);
    if (study.objectives() > 1) return weights;
    const auto& order = ranking_.order();
    const auto loss = [&](size_t place) { return ranking_.loss_at(study, order[std::min(place, order.size() - 1)]); };
    const double threshold = loss(good);
    double total = 0;
    for (size_t i = 0; i < good; ++i) total += weights[i] = threshold - loss(i);
    if (!std::isfinite(total) || !(total > 0)) return std::vector<double>(good, 1);
    for (double& weight : weights) weight = std::max(weight * static_cast<double>(good) / total, 1e-3);
    return weights;
  }

  // Returns the bad trials by id: all of them, or the newest and an even sample of the older ones. Appends the trials
  // without a known loss.
  std::vector<int32_t> choose_bad(const Study& study, size_t good) const {
    std::vector<bool> bad(study.trials().size());
    for (size_t place = good; place < ranking_.order().size(); ++place)
      bad[static_cast<size_t>(ranking_.order()[place])] = true;
    std::vector<int32_t> all, rows;
    for (size_t id = 0; id < bad.size(); ++id) {
      if (bad[id]) all.push_back(static_cast<int32_t>(id));
    }
    const size_t older = all.size() <= kMostBad ? 0 : all.size() - kMostBad / 2;
    const size_t stride = std::max<size_t>(1, (older + kMostBad / 2 - 1) / (kMostBad / 2));
    for (size_t i = 0; i < older; i += stride) rows.push_back(all[i]);
    rows.insert(rows.end(), all.begin() + static_cast<ptrdiff_t>(older), all.end());
    rows.insert(rows.end(), ranking_.unknown().begin(), ranking_.unknown().end());
    return rows;
  }

  Suggestion best_candidate(const Study& study, const TpeDensity& low, const TpeDensity& high, size_t good) const {
    const Space& space = study.space();
    RandomStream random = study.random("tpe");
    std::vector<float> unit(space.size());
    Point best;
    double best_score = -std::numeric_limits<double>::infinity();
    for (int i = 0; i < kCandidates; ++i) {
      Point point = first_allowed(space, kAllowedDraws, [&] { return low.draw(space, random); });
      for (size_t d = 0; d < unit.size(); ++d) {
        unit[d] = std::isnan(point[d]) ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(space.unit_at(d, point[d]));
      }
      const double score = low.log_density(space, unit) - high.log_density(space, unit);
      if (best.empty() || score > best_score) {
        best_score = score;
        best = std::move(point);
      }
    }
    return {std::move(best),
            "tpe",
            "where the best " + std::to_string(good) + " trials are dense and the others are not",
            {}};
  }

  SobolDesign design_{"tpe start"};
  Ranking ranking_;
  Columns columns_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe() {
  return std::make_unique<TpeSampler>();
}

}  // namespace sinew::tune
