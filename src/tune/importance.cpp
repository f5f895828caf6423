// Computes parameter importance: which parameters explain the variance of an objective.
//
// This is a functional analysis of variance on a random forest: Hutter, Hoos, Leyton-Brown, "An efficient approach for
// assessing hyperparameter importance" (ICML 2014). It is exact for the forest, because a tree is constant on boxes.
// The main effect of a parameter is the variance of the prediction along it, averaged over all values of the others.
// The interaction of a pair is the variance that the two explain together beyond their main effects. Every region of
// the space counts alike, however many trials the samplers placed in it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/forest.h"

namespace sinew::tune {
namespace {

constexpr size_t kFewestTrials = 10;  // importance_of() needs this many trials with a finite loss
constexpr size_t kMostTrials = 1000;  // only the newest trials count
// Losses above the median are clipped at this many times the distance from the best to the median.
constexpr double kFarOut = 3;
constexpr size_t kMostPairs = 10;  // the most pairs in the result
constexpr size_t kPaired = 8;      // only this many parameters, the most important ones, form pairs

// The range of one parameter, cut into pieces so that each box of a tree contains every piece wholly or not at all.
struct Pieces {
  std::vector<double> cuts;  // the ends of the pieces of a number, ascending from 0 to 1
  // The part of the whole range that each piece covers.
  std::vector<double> fractions;
  // returns the pieces in `side`, as ranges [from, to)
  std::vector<std::pair<size_t, size_t>> of(const Side& side) const;
};

Pieces pieces_of(const Tree& tree, size_t i) {
  Pieces pieces;
  if (const size_t choices = tree[0].box[i].choices.size(); choices > 0) {
    pieces.fractions.assign(choices, 1.0 / static_cast<double>(choices));
    return pieces;
  }
  for (const Leaf& leaf : tree) pieces.cuts.insert(pieces.cuts.end(), {leaf.box[i].low, leaf.box[i].high});
  std::ranges::sort(pieces.cuts);
  pieces.cuts.erase(std::ranges::unique(pieces.cuts).begin(), pieces.cuts.end());
  for (size_t k = 0; k + 1 < pieces.cuts.size(); ++k) pieces.fractions.push_back(pieces.cuts[k + 1] - pieces.cuts[k]);
  return pieces;
}

std::vector<std::pair<size_t, size_t>> Pieces::of(const Side& side) const {
  if (side.choices.empty()) {
    const auto at = [&](double cut) { return static_cast<size_t>(std::ranges::lower_bound(cuts, cut) - cuts.begin()); };
    return {{at(side.low), at(side.high)}};
  }
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t c = 0; c < side.choices.size(); ++c) {
    if (side.choices[c]) runs.emplace_back(c, c + 1);
  }
  return runs;
}

// The analysis of variance of one tree.
class Analysis {
 public:
  explicit Analysis(const Tree& tree) : tree_(tree) {
    for (size_t i = 0; i < tree[0].box.size(); ++i) pieces_.push_back(pieces_of(tree, i));
    for (const Leaf& leaf : tree) {
      volumes_.push_back(leaf.volume());
      mean_ += volumes_.back() * leaf.value;
    }
    for (size_t l = 0; l < tree.size(); ++l) whole_ += volumes_[l] * std::pow(tree[l].value - mean_, 2);
  }

  double whole() const { return whole_; }

  double of_one(size_t i) const {
    const Pieces& along = pieces_[i];
    std::vector<double> means(along.fractions.size());
    for (size_t l = 0; l < tree_.size(); ++l) {
      const double rest = volumes_[l] / tree_[l].box[i].fraction() * (tree_[l].value - mean_);
      for (const auto& [from, to] : along.of(tree_[l].box[i])) {
        for (size_t k = from; k < to; ++k) means[k] += rest;
      }
    }
    double variance = 0;
    for (size_t k = 0; k < means.size(); ++k) variance += along.fractions[k] * means[k] * means[k];
    return variance;
  }

  // The variance along both parameters together, main effects included.
  double of_two(size_t i, size_t j) const {
    const Pieces &across = pieces_[i], &down = pieces_[j];
    std::vector<double> means(across.fractions.size() * down.fractions.size());
    for (size_t l = 0; l < tree_.size(); ++l) {
      const double rest =
          volumes_[l] / tree_[l].box[i].fraction() / tree_[l].box[j].fraction() * (tree_[l].value - mean_);
      for (const auto& [from, to] : across.of(tree_[l].box[i])) {
        for (const auto& [top, bottom] : down.of(tree_[l].box[j])) {
          for (size_t a = from; a < to; ++a) {
            for (size_t b = top; b < bottom; ++b) means[a * down.fractions.size() + b] += rest;
          }
        }
      }
    }
    double variance = 0;
    for (size_t k = 0; k < means.size(); ++k)
      variance +=
          across.fractions[k / down.fractions.size()] * down.fractions[k % down.fractions.size()] * means[k] * means[k];
    return variance;
  }

 private:
  const Tree& tree_;
  std::vector<Pieces> pieces_;
  std::vector<double> volumes_;
  double mean_ = 0, whole_ = 0;
};

// Clips large losses. Diverged trainings say little about good ones, but would otherwise make up all the variance.
void draw_in(std::vector<double>& losses) {
  std::vector<double> sorted;
  for (const double loss : losses) {
    if (std::isfinite(loss)) sorted.push_back(loss);
  }
  std::ranges::sort(sorted);
  const double best = sorted.front(), median = sorted[sorted.size() / 2];
  const double most = median > best ? median + kFarOut * (median - best) : sorted.back();
  for (double& loss : losses) loss = std::clamp(std::isnan(loss) ? most : loss, best, most);
}

struct Known {
  std::vector<std::vector<double>> rows;
  std::vector<double> losses;
};

// Collects the newest trials with a loss. A paused or pruned trial without values counts with its estimated loss
// (Study::known_loss).
Known known_of(const Study& study, size_t objective) {
  Known known;
  for (auto trial = study.trials().rbegin(); trial != study.trials().rend(); ++trial) {
    if (known.rows.size() == kMostTrials) break;
    const bool ended = trial->state == TrialState::failed || objective < trial->values.size();
    const auto loss = objective == 0 ? study.known_loss(*trial)
                      : ended        ? std::optional(study.loss(*trial, objective))
                                     : std::nullopt;
    if (!loss || trial->state == TrialState::running) continue;
    known.rows.push_back(study.space().to_unit(trial->point));
    known.losses.push_back(*loss);
  }
  return known;
}

std::vector<Importance::Pair> pairs_of(const std::vector<Analysis>& analyses, const std::vector<double>& alone) {
  std::vector<size_t> chosen(alone.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  std::ranges::stable_sort(chosen, std::greater{}, [&](size_t i) { return alone[i]; });
  chosen.resize(std::min(chosen.size(), kPaired));
  std::ranges::sort(chosen);
  std::vector<Importance::Pair> pairs;
  for (size_t a = 0; a < chosen.size(); ++a) {
    for (size_t b = a + 1; b < chosen.size(); ++b) {
      const size_t i = chosen[a], j = chosen[b];
      double share = 0;
      for (const Analysis& analysis : analyses)
        share += (analysis.of_two(i, j) - analysis.of_one(i) - analysis.of_one(j)) / analysis.whole();
      pairs.push_back({i, j, std::max(share / static_cast<double>(analyses.size()), 0.0)});
    }
  }
  std::ranges::stable_sort(pairs, std::greater{}, &Importance::Pair::share);
  pairs.resize(std::min(pairs.size(), kMostPairs));
  return pairs;
}

}  // namespace

std::optional<Importance> importance_of(const Study& study, size_t objective) {
  Known known = known_of(study, objective);
  const auto finite = std::ranges::count_if(known.losses, [](double loss) { return std::isfinite(loss); });
  if (finite < static_cast<ptrdiff_t>(kFewestTrials)) return std::nullopt;
  draw_in(known.losses);
  const auto forest = grow_forest(study.space(), known.rows, known.losses, study.key("importance"));
  std::vector<Analysis> analyses;
  for (const Tree& tree : forest) {
    if (Analysis analysis(tree); analysis.whole() > 0) analyses.push_back(std::move(analysis));
  }
  Importance importance;
  importance.trials = static_cast<int64_t>(known.rows.size());
  importance.alone.assign(study.space().size(), 0);
  for (const Analysis& analysis : analyses) {
    for (size_t i = 0; i < importance.alone.size(); ++i)
      importance.alone[i] += analysis.of_one(i) / analysis.whole() / static_cast<double>(analyses.size());
  }
  if (!analyses.empty()) importance.pairs = pairs_of(analyses, importance.alone);
  return importance;
}

}  // namespace sinew::tune
