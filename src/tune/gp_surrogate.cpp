#include "tune/gp_surrogate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/acquisition_search.h"
#include "tune/gp_fitter.h"
#include "tune/gp_transfer.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kLeastEnded = 3;  // fit_surrogate() needs this many known trials, even if many more are running
constexpr size_t kLeastJoint = 2;  // this many known trials suffice if earlier studies are usable
constexpr int64_t kOwnTurn = 4;    // with earlier studies, every n-th suggestion ignores them
// If there are more than kMostPoints trials, known_trials() keeps the kMostBest best ones and the newest of the others.
constexpr size_t kMostPoints = 400, kMostBest = 250;

// The contents of a suggestion's sampler_state: the fit of each Gaussian process, then the joint fit (gp_transfer.h),
// if there is one.
struct Memory {
  std::vector<FitRecord> processes;
  std::optional<JointFit> joint;
};

Memory memory_of(const Study& study, Index axes, size_t processes, Index earlier) {
  const Index numbers = KernelLayout{axes}.size();
  const size_t each = FitRecord::size(numbers), all = each * processes;
  const size_t with_joint = all + (earlier > 0 ? JointFit::size(axes, earlier) : 0);
  for (auto trial = study.trials().rbegin(); trial != study.trials().rend(); ++trial) {
    const std::span<const double> sampler_state = trial->sampler_state;
    if (trial->by != "gp" || (sampler_state.size() != all && sampler_state.size() != with_joint)) continue;
    Memory memory;
    for (size_t k = 0; k < processes; ++k)
      memory.processes.push_back(FitRecord::read(sampler_state.subspan(k * each), numbers));
    if (earlier > 0 && sampler_state.size() == with_joint)
      memory.joint = JointFit::read(sampler_state.subspan(all), axes);
    return memory;
  }
  return {};
}

// Returns the loss that the surrogate uses for a trial, or nullopt if the surrogate ignores the trial. For a running
// trial this is the final value that its pruner expects, never its last report.
std::optional<double> modelled_loss(const Study& study, const Trial& trial) {
  if (study.objectives() > 1) {
    const bool ended = trial.state == TrialState::failed || !trial.values.empty();
    return ended ? std::optional(study.loss(trial)) : std::nullopt;
  }
  if (trial.state == TrialState::running && !trial.estimate) return std::nullopt;
  return study.known_loss(trial);
}

// Returns the trials that the surrogate knows: all with a modelled loss, or the best and the newest of them.
std::vector<const Trial*> known_trials(const Study& study) {
  std::vector<const Trial*> all;
  for (const auto* ids : {&study.observed(), &study.open()}) {
    for (const int64_t id : *ids) {
      if (modelled_loss(study, study.trial(id))) all.push_back(&study.trial(id));
    }
  }
  if (all.size() <= kMostPoints) return all;
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t newest = all.size() - (kMostPoints - kMostBest);
  const auto rank = [&](size_t i) { return std::pair(Study::violation(*all[i]), *modelled_loss(study, *all[i])); };
  std::ranges::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(newest), {}, rank);
  order.erase(order.begin() + kMostBest, order.begin() + static_cast<std::ptrdiff_t>(newest));
  std::ranges::sort(order);
  std::vector<const Trial*> kept;
  for (const size_t i : order) kept.push_back(all[i]);
  return kept;
}

// Scales the values of a constraint to a root mean square of 1. Keeps the signs, and compresses large values by a
// logarithm.
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
    const double raw = value(trials[i]);  // NaN for a failed trial, which then counts as a violation of median size
    const double ratio = std::isfinite(raw) ? raw / unit : 1;
    values[static_cast<Index>(i)] = std::copysign(std::log1p(std::abs(ratio)), ratio);
  }
  const double spread = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  return spread > 0 ? VectorXd(values / spread) : values;
}

// Returns whether there are enough trials for a surrogate. `least` is compared with the started trials, including those
// that run. With many workers it would take long until `least` trials have ended.
bool enough(const Study& study, size_t ended, size_t least) {
  return ended >= std::min(least, kLeastEnded) && static_cast<size_t>(study.next_id()) >= least;
}

double known_count(const Study& study) {
  size_t count = study.observed().size();
  for (const int64_t id : study.open()) count += modelled_loss(study, study.trial(id)).has_value();
  return static_cast<double>(count);
}

std::vector<double> losses_of(const Study& study, const std::vector<const Trial*>& trials, size_t objective) {
  std::vector<double> losses;
  for (const Trial* trial : trials) {
    losses.push_back(objective == 0 ? *modelled_loss(study, *trial) : study.loss(*trial, objective));
  }
  return losses;
}

bool all_finite(const Study& study, const Trial& trial) {
  bool finite = std::isfinite(*modelled_loss(study, trial));
  for (size_t k = 1; k < study.objectives(); ++k) finite &= std::isfinite(study.loss(trial, k));
  return finite;
}

// Adds the running trials with fantasies: values drawn from the predictive distribution. With the predicted mean
// instead, all parallel workers would get nearly the same point.
void fantasise_running(const Study& study, Surrogate& model) {
  RandomStream random = study.random("fantasy");
  for (const int64_t id : study.open()) {
    if (study.trial(id).state != TrialState::running || modelled_loss(study, study.trial(id))) continue;
    const VectorXd x = row_of(study.space(), study.trial(id).point);
    for (auto* group : {&model.objectives, &model.constraints}) {
      for (GaussianProcess& process : *group) {
        const Normal there = process.at(x);
        process.append(x, there.mean + std::sqrt(std::max(0.0, there.variance)) * random.normal());
      }
    }
    ++model.fantasies;
  }
}

}  // namespace

std::vector<std::vector<double>> Surrogate::feasible_fantasies() const {
  const auto value = [&](const GaussianProcess& process, Index i) {
    return process.value(process.size() - fantasies + i);
  };
  std::vector<std::vector<double>> all;
  for (Index i = 0; i < fantasies; ++i) {
    if (std::ranges::any_of(constraints, [&](const GaussianProcess& process) { return value(process, i) > 0; }))
      continue;
    std::vector<double>& one = all.emplace_back();
    for (const GaussianProcess& process : objectives) one.push_back(value(process, i));
  }
  return all;
}

std::optional<Surrogate> fit_surrogate(const Study& study, size_t least) {
  Surrogate model;
  model.trials = known_trials(study);
  const Index earlier = usable_earlier_studies(study);
  const auto finite = [&](const Trial* trial) { return all_finite(study, *trial); };
  const bool own = enough(study, model.trials.size(), least);
  if ((!own && !(earlier > 0 && model.trials.size() >= kLeastJoint)) || std::ranges::none_of(model.trials, finite))
    return std::nullopt;
  const std::vector<Axis> axes = axes_of(study.space());
  const auto d = static_cast<Index>(axes.size());
  model.known = static_cast<Index>(model.trials.size());
  Points points(model.known, d);
  size_t constraints = 0;
  for (Index i = 0; i < model.known; ++i) {
    const Trial& trial = *model.trials[static_cast<size_t>(i)];
    points.row(i) = row_of(study.space(), trial.point).transpose();
    constraints = std::max(constraints, trial.constraints.size());
  }
  const size_t processes = study.objectives() + constraints;
  const Memory memory = memory_of(study, d, processes, earlier);
  for (size_t k = 0; k < processes; ++k) {
    const Fitter fitter(axes, points, known_count(study), memory.processes.empty() ? nullptr : &memory.processes[k]);
    const bool objective = k < study.objectives();
    const std::vector<double> losses = objective ? losses_of(study, model.trials, k) : std::vector<double>{};
    const VectorXd squashed_values = objective ? VectorXd() : squashed(model.trials, k - study.objectives());
    const FitRecord fit = objective ? fitter.fit(losses, study.objectives() == 1) : fitter.fit(squashed_values);
    const VectorXd values = objective ? warp(losses, fit.warp).values : squashed_values;
    (objective ? model.objectives : model.constraints).emplace_back(axes, fit.log_parameters, points, values);
    fit.write(model.sampler_state);
  }
  // Late in a study, its own trials describe the neighbourhood of the best point better than the earlier studies do.
  // Every kOwnTurn-th suggestion therefore uses the study's own trials only.
  const bool own_turn = own && study.next_id() % kOwnTurn == 0;
  if (own_turn && memory.joint) {
    memory.joint->write(model.sampler_state);
  } else if (earlier > 0) {
    const std::vector<double> losses = losses_of(study, model.trials, 0);
    JointModel joint = joint_model_of(study.options().earlier, axes, points, losses, known_count(study),
                                      memory.joint ? &*memory.joint : nullptr);
    joint.fit.write(model.sampler_state);
    const bool believed = ranks_better(joint.process, model.objectives[0], losses);
    if (!believed && !own) return std::nullopt;
    if (believed && !own_turn) model.objectives[0] = std::move(joint.process);
  }
  fantasise_running(study, model);
  return model;
}

}  // namespace sinew::tune
