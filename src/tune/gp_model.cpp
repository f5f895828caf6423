#include "tune/gp_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/acquisition_search.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kMostPoints = 400, kMostBest = 250;  // beyond: the best and the newest
constexpr size_t kMostFitted = 150;                   // points the numbers are fitted to; every so manyth of all
constexpr double kGrowth = 1.2;                       // of the trials since the fit was begun anew from all starts
constexpr double kWarmGrowth = 1.04;                  // since the fit was brought up to date
constexpr int kWarmEvaluations = 12, kStartEvaluations = 50, kWarpEvaluations = 15;

// Of one process: how many trials there were when it was fitted from all starts and when it was last fitted at all, its
// warp, its fitted numbers.
struct Remembered {
  double begun_at = 0, fitted_at = 0;
  WarpKind warp = WarpKind::halfrank;
  VectorXd logs;
};
constexpr size_t kBesideLogs = 3;

std::vector<Remembered> remembered(const Study& study, Index numbers, size_t processes) {
  const auto each = static_cast<size_t>(numbers) + kBesideLogs;
  for (auto trial = study.trials().rbegin(); trial != study.trials().rend(); ++trial) {
    if (trial->by != "gp" || trial->memo.size() != each * processes) continue;
    std::vector<Remembered> all;
    for (size_t k = 0; k < processes; ++k) {
      const double* from = trial->memo.data() + k * each;
      all.push_back({from[0], from[1], static_cast<WarpKind>(static_cast<int>(from[2])),
                     Eigen::Map<const VectorXd>(from + kBesideLogs, numbers)});
    }
    return all;
  }
  return {};
}

// What a trial is known to be worth, as far as a process should believe it: a running one is worth what its stopper
// expects, not what it reported last.
std::optional<double> worth(const Study& study, const Trial& trial) {
  if (study.objectives() > 1) {
    const bool ended = trial.state == TrialState::failed || !trial.values.empty();
    return ended ? std::optional(study.loss(trial)) : std::nullopt;
  }
  if (trial.state == TrialState::running && !trial.estimate) return std::nullopt;
  return study.known_loss(trial);
}

// The trials to know: all, or the best and the newest.
std::vector<const Trial*> known_trials(const Study& study) {
  std::vector<const Trial*> all;
  for (const auto* ids : {&study.told(), &study.open()}) {
    for (const int64_t id : *ids) {
      if (worth(study, study.trial(id))) all.push_back(&study.trial(id));
    }
  }
  if (all.size() <= kMostPoints) return all;
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t newest = all.size() - (kMostPoints - kMostBest);
  const auto rank = [&](size_t i) { return std::pair(Study::violation(*all[i]), *worth(study, *all[i])); };
  std::ranges::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(newest), {}, rank);
  order.erase(order.begin() + kMostBest, order.begin() + static_cast<std::ptrdiff_t>(newest));
  std::ranges::sort(order);
  std::vector<const Trial*> kept;
  for (const size_t i : order) kept.push_back(all[i]);
  return kept;
}

// Signs stay, size is drawn in, and the spread is 1.
VectorXd squashed(const std::vector<const Trial*>& trials, size_t constraint) {
  std::vector<double> sizes;
  const auto value = [&](const Trial* trial) {
    return constraint < trial->constraints.size() ? trial->constraints[constraint] : std::nan("");
  };
  for (const Trial* trial : trials) {
    if (std::isfinite(value(trial))) sizes.push_back(std::abs(value(trial)));
  }
  VectorXd values(static_cast<Index>(trials.size()));
  double unit = 1;
  if (!sizes.empty()) {
    std::ranges::nth_element(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2));
    if (sizes[sizes.size() / 2] > 0) unit = sizes[sizes.size() / 2];
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    const double raw = value(trials[i]);  // untold, of a failed trial: as infeasible as usual
    const double ratio = std::isfinite(raw) ? raw / unit : 1;
    values[static_cast<Index>(i)] = std::copysign(std::log1p(std::abs(ratio)), ratio);
  }
  const double spread = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  return spread > 0 ? VectorXd(values / spread) : values;
}

// Every so manyth of the rows, so that at most kMostFitted are left.
struct Thinned {
  Points points;
  VectorXd values;
};
Thinned thinned(const Points& points, const VectorXd& values) {
  const Index step = (values.size() + static_cast<Index>(kMostFitted) - 1) / static_cast<Index>(kMostFitted);
  if (step <= 1) return {points, values};
  const Index n = (values.size() + step - 1) / step;
  Thinned thin{Points(n, points.cols()), VectorXd(n)};
  for (Index i = 0; i < n; ++i) {
    thin.points.row(i) = points.row(values.size() - 1 - i * step);
    thin.values[i] = values[values.size() - 1 - i * step];
  }
  return thin;
}

class Fitter {
 public:
  Fitter(const std::vector<Axis>& axes, const Points& points, double trials, const Remembered* memory)
      : axes_(axes), points_(points), trials_(trials), memory_(memory) {
    begin_anew_ = memory == nullptr || trials >= kGrowth * memory->begun_at;
  }

  // The process of fixed values.
  Remembered fit(const VectorXd& values) const {
    return up_to_date() ? *memory_ : remembered_as(WarpKind::linear, best_fit(values).logs);
  }

  // The process of losses, with the warp that explains them best.
  Remembered fit(std::span<const double> losses, bool may_bend) const {
    if (up_to_date()) return *memory_;
    if (!begin_anew_) return remembered_as(memory_->warp, best_fit(warp(losses, memory_->warp).values).logs);
    const Warped first = warp(losses, WarpKind::halfrank);
    Fit best = best_fit(first.values);
    Remembered chosen = remembered_as(WarpKind::halfrank, best.logs);
    double least = best.misfit - first.log_slopes;
    for (const WarpKind kind : {WarpKind::bent, WarpKind::logarithm}) {
      if (!may_bend) break;
      const Warped other = warp(losses, kind);
      const Thinned thin = thinned(points_, other.values);
      const Fit fit = fit_from(axes_, thin.points, thin.values, best.logs, kWarpEvaluations);
      if (fit.misfit - other.log_slopes >= least) continue;
      least = fit.misfit - other.log_slopes;
      chosen = remembered_as(kind, fit.logs);
    }
    return chosen;
  }

 private:
  bool up_to_date() const { return !begin_anew_ && trials_ < kWarmGrowth * memory_->fitted_at; }

  Remembered remembered_as(WarpKind warp, const VectorXd& logs) const {
    return {begin_anew_ ? trials_ : memory_->begun_at, trials_, warp, logs};
  }

  Fit best_fit(const VectorXd& values) const {
    const Thinned thin = thinned(points_, values);
    std::optional<Fit> best;
    const auto consider = [&](const VectorXd& start, int evaluations) {
      Fit fit = fit_from(axes_, thin.points, thin.values, start, evaluations);
      if (!best || fit.misfit < best->misfit) best = std::move(fit);
    };
    if (memory_ != nullptr) consider(memory_->logs, kWarmEvaluations);
    if (begin_anew_) {
      for (const VectorXd& start : fit_starts(axes_)) consider(start, kStartEvaluations);
    }
    return *best;
  }

  const std::vector<Axis>& axes_;
  const Points& points_;
  double trials_;
  const Remembered* memory_;
  bool begin_anew_ = true;
};

void remember(const Remembered& fit, std::vector<double>& memo) {
  memo.push_back(fit.begun_at);
  memo.push_back(fit.fitted_at);
  memo.push_back(static_cast<double>(fit.warp));
  memo.insert(memo.end(), fit.logs.begin(), fit.logs.end());
}

double known_count(const Study& study) {
  size_t count = study.told().size();
  for (const int64_t id : study.open()) count += worth(study, study.trial(id)).has_value();
  return static_cast<double>(count);
}

std::vector<double> losses_of(const Study& study, const std::vector<const Trial*>& trials, size_t objective) {
  std::vector<double> losses;
  for (const Trial* trial : trials) {
    losses.push_back(objective == 0 ? *worth(study, *trial) : study.loss(*trial, objective));
  }
  return losses;
}

// Running trials are appended with the values that are expected of them.
void believe_running(const Study& study, StudyModel& model) {
  for (const int64_t id : study.open()) {
    if (worth(study, study.trial(id))) continue;
    const VectorXd x = row_of(study.space(), study.trial(id).point);
    for (auto* group : {&model.objectives, &model.constraints}) {
      for (GaussianProcess& process : *group) process.append(x, process.at(x).mean);
    }
  }
}

}  // namespace

std::optional<StudyModel> model_of(const Study& study, size_t least) {
  StudyModel model;
  model.trials = known_trials(study);
  const auto finite = [&](const Trial* trial) { return std::isfinite(*worth(study, *trial)); };
  if (model.trials.size() < least || std::ranges::none_of(model.trials, finite)) return std::nullopt;
  const std::vector<Axis> axes = axes_of(study.space());
  const KernelLayout at{static_cast<Index>(axes.size())};
  model.known = static_cast<Index>(model.trials.size());
  Points points(model.known, at.axes);
  size_t constraints = 0;
  for (Index i = 0; i < model.known; ++i) {
    const Trial& trial = *model.trials[static_cast<size_t>(i)];
    points.row(i) = row_of(study.space(), trial.point).transpose();
    constraints = std::max(constraints, trial.constraints.size());
  }
  const size_t processes = study.objectives() + constraints;
  const std::vector<Remembered> memory = remembered(study, at.size(), processes);
  for (size_t k = 0; k < processes; ++k) {
    const Fitter fitter(axes, points, known_count(study), memory.empty() ? nullptr : &memory[k]);
    const bool objective = k < study.objectives();
    const std::vector<double> losses = objective ? losses_of(study, model.trials, k) : std::vector<double>{};
    const VectorXd squashed_values = objective ? VectorXd() : squashed(model.trials, k - study.objectives());
    const Remembered fit = objective ? fitter.fit(losses, study.objectives() == 1) : fitter.fit(squashed_values);
    const VectorXd values = objective ? warp(losses, fit.warp).values : squashed_values;
    (objective ? model.objectives : model.constraints).emplace_back(axes, fit.logs, points, values);
    remember(fit, model.memo);
  }
  believe_running(study, model);
  return model;
}

}  // namespace sinew::tune
