// CMA-ES with margin: a normal distribution that adapts its mean, step size and covariance. It suits many numeric
// parameters and many trials.
//
// Hansen, "The CMA evolution strategy: a tutorial" (arXiv 1604.00772), with its default weights and rates. Hamano,
// Saito, Nomura, Shirakawa, "CMA-ES with margin" (GECCO 2022), in its simplest form: along a parameter with grid steps,
// the standard deviation stays so large that some trials leave the grid step of the mean. When the distribution has
// converged, the sampler restarts with twice as many trials in a generation (Auger, Hansen 2005).
//
// The `sampler_state` of a generation's first trial holds the distribution of that generation, so the distribution is
// part of the trial history. A generation is complete when its full number of trials has started and at least half of
// them have a known loss.
#include <algorithm>
#include <cmath>
#include <eigen3/Eigen/Eigenvalues>
#include <tuple>

#include "tune/allowed.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kFirstSpread = 0.25;  // initial step size, in the unit cube
constexpr double kConverged = 1e-6;

struct Distribution {
  double generation = 0, size = 0, spread = kFirstSpread;  // size: the number of trials in a generation
  VectorXd mean, path, sigma_path;
  MatrixXd covariance;
};

std::vector<double> packed(const Distribution& state) {
  std::vector<double> sampler_state = {state.generation, state.size, state.spread};
  for (const VectorXd* part : {&state.mean, &state.path, &state.sigma_path})
    sampler_state.insert(sampler_state.end(), part->begin(), part->end());
  for (Eigen::Index i = 0; i < state.covariance.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) sampler_state.push_back(state.covariance(i, j));
  }
  return sampler_state;
}

Distribution unpacked(std::span<const double> sampler_state, Eigen::Index d) {
  Distribution state{sampler_state[0], sampler_state[1], sampler_state[2], VectorXd(d),
                     VectorXd(d),      VectorXd(d),      MatrixXd(d, d)};
  size_t at = 3;
  for (VectorXd* part : {&state.mean, &state.path, &state.sigma_path}) {
    for (double& value : *part) value = sampler_state[at++];
  }
  for (Eigen::Index i = 0; i < d; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) state.covariance(i, j) = state.covariance(j, i) = sampler_state[at++];
  }
  return state;
}

double mirrored(double x) {  // reflects x into [0, 1]
  x = std::fmod(std::abs(x), 2.0);
  return x > 1 ? 2 - x : x;
}

class CmaesSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const auto d = static_cast<Eigen::Index>(study.space().size());
    // The sampler_state of a trial holds its coordinates. The sampler_state of a generation's first trial also holds
    // the distribution.
    std::vector<const Trial*> members;
    for (auto trial = study.trials().rbegin(); trial != study.trials().rend(); ++trial) {
      if (trial->by != "cmaes" || trial->sampler_state.empty()) continue;  // empty: suggest_next() replaced the point
      members.push_back(&*trial);
      if (trial->sampler_state.size() > static_cast<size_t>(d)) break;
    }
    if (members.empty()) return first_of(study, beginning(study, 4 + std::floor(3 * std::log(static_cast<double>(d)))));
    const Distribution state = unpacked(std::span(members.back()->sampler_state).subspan(static_cast<size_t>(d)), d);
    std::vector<const Trial*> known;
    for (const Trial* member : members) {
      if (study.known_loss(*member)) known.push_back(member);
    }
    const bool closed = static_cast<double>(members.size()) >= state.size &&
                        static_cast<double>(known.size()) >= std::max(state.size / 2, 2.0);
    if (!closed) return drawn(study, state, {});
    std::ranges::sort(known, {}, [&](const Trial* member) {
      return std::tuple(Study::violation(*member), *study.known_loss(*member), member->id);
    });
    Distribution next = updated(study, state, known);
    const double widest = next.spread * std::sqrt(next.covariance.diagonal().maxCoeff());
    if (!(widest > kConverged) || !(widest < 1e3)) next = anywhere(study, 2 * state.size);
    return first_of(study, next);
  }

 private:
  // Returns a new distribution with a random mean, with which a restart begins.
  static Distribution anywhere(const Study& study, double size) {
    const auto d = static_cast<Eigen::Index>(study.space().size());
    RandomStream random = study.random("cmaes begin");
    Distribution state{
        0, size, kFirstSpread, VectorXd(d), VectorXd::Zero(d), VectorXd::Zero(d), MatrixXd::Identity(d, d)};
    for (double& x : state.mean) x = random.uniform(0.2, 0.8);
    return state;
  }

  // Returns the first distribution: around the best point that other samplers found, if there is one.
  static Distribution beginning(const Study& study, double size) {
    Distribution state = anywhere(study, size);
    const Trial* best = nullptr;
    const auto rank = [&](const Trial& trial) { return std::pair(Study::violation(trial), study.loss(trial)); };
    for (const int64_t id : study.observed()) {
      const Trial& trial = study.trial(id);
      if (trial.by != "cmaes" && (best == nullptr || rank(trial) < rank(*best))) best = &trial;
    }
    if (best == nullptr) return state;
    const auto unit = study.space().to_unit(best->point);
    for (Eigen::Index i = 0; i < state.mean.size(); ++i) {
      if (!std::isnan(unit[static_cast<size_t>(i)])) state.mean[i] = unit[static_cast<size_t>(i)];
    }
    return state;
  }

  static Distribution updated(const Study& study, const Distribution& state, const std::vector<const Trial*>& known) {
    const Eigen::Index d = state.mean.size();
    const double n = static_cast<double>(d);
    const size_t parents = std::max<size_t>(1, known.size() / 2);
    std::vector<double> weights(parents);
    double total = 0, squares = 0;
    for (size_t i = 0; i < parents; ++i)
      total += weights[i] =
          std::log(static_cast<double>(known.size()) / 2 + 0.5) - std::log(static_cast<double>(i) + 1);
    for (double& weight : weights) {
      weight /= total;
      squares += weight * weight;
    }
    const double mass = 1 / squares;
    const double c_spread = (mass + 2) / (n + mass + 5), c_path = (4 + mass / n) / (n + 4 + 2 * mass / n);
    const double damping = 1 + c_spread + 2 * std::max(0.0, std::sqrt((mass - 1) / (n + 1)) - 1);
    const double c_one = 2 / ((n + 1.3) * (n + 1.3) + mass);
    const double c_mu = std::min(1 - c_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) * (n + 2) + mass));
    const double expected = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
    Distribution next = state;
    std::vector<VectorXd> steps;
    VectorXd step = VectorXd::Zero(d);
    for (size_t i = 0; i < parents; ++i) {
      const VectorXd x = Eigen::Map<const VectorXd>(known[i]->sampler_state.data(), d);
      steps.push_back((x - state.mean) / state.spread);
      step += weights[i] * steps.back();
    }
    next.mean += state.spread * step;
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(state.covariance);
    const VectorXd roots = eigen.eigenvalues().cwiseMax(1e-20).cwiseSqrt();
    const VectorXd white = eigen.eigenvectors() * (eigen.eigenvectors().transpose() * step).cwiseQuotient(roots);
    next.sigma_path = (1 - c_spread) * state.sigma_path + std::sqrt(c_spread * (2 - c_spread) * mass) * white;
    const double length = next.sigma_path.norm();
    const bool moving =
        length / std::sqrt(1 - std::pow(1 - c_spread, 2 * (state.generation + 1))) < (1.4 + 2 / (n + 1)) * expected;
    next.path = (1 - c_path) * state.path;
    if (moving) next.path += std::sqrt(c_path * (2 - c_path) * mass) * step;
    next.covariance =
        (1 - c_one - c_mu) * state.covariance +
        c_one * (next.path * next.path.transpose() + (moving ? 0 : c_path * (2 - c_path)) * state.covariance);
    for (size_t i = 0; i < parents; ++i) next.covariance += c_mu * weights[i] * steps[i] * steps[i].transpose();
    next.spread *= std::exp(std::min(1.0, c_spread / damping * (length / expected - 1)));
    next.generation += 1;
    for (double& x : next.mean) x = std::clamp(x, 0.0, 1.0);
    keep_margin(study.space(), next);
    return next;
  }

  // Keeps the standard deviation along a parameter with grid steps so large that some draws leave the grid step of the
  // mean: about one in nine if the mean is in the middle of the step, and one in eighteen if it is near an edge.
  static void keep_margin(const Space& space, Distribution& state) {
    for (Eigen::Index i = 0; i < state.mean.size(); ++i) {
      const auto cells = static_cast<double>(space.cells(static_cast<size_t>(i)));
      if (cells < 2) continue;
      const double inside = state.mean[i] * cells - std::floor(state.mean[i] * cells);
      const double least =
          // About one draw in eighteen is more than 1.6 standard deviations above the mean, and as many below it.
          std::min(inside, 1 - inside) / cells / 1.6 + 1e-9;
      const double deviation = state.spread * std::sqrt(state.covariance(i, i));
      if (deviation >= least) continue;
      state.covariance.row(i) *= least / deviation;
      state.covariance.col(i) *= least / deviation;
    }
  }

  static Suggestion first_of(const Study& study, const Distribution& state) {
    return drawn(study, state, packed(state));
  }

  static Suggestion drawn(const Study& study, const Distribution& state, const std::vector<double>& behind) {
    RandomStream random = study.random("cmaes");
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(state.covariance);
    const MatrixXd spreads =
        state.spread * eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
    std::vector<double> sampler_state;
    Point point = first_allowed(study.space(), kAllowedDraws, [&] {
      VectorXd normal(state.mean.size());
      for (double& z : normal) z = random.normal();
      const VectorXd x = state.mean + spreads * normal;
      sampler_state.assign(x.begin(), x.end());
      for (double& value : sampler_state) value = mirrored(value);
      return study.space().from_unit(sampler_state);
    });
    Suggestion suggestion{std::move(point),
                          "cmaes",
                          "drawn from generation " + std::to_string(static_cast<int64_t>(state.generation) + 1) +
                              " of a normal distribution that moves towards the better half",
                          {}};
    sampler_state.insert(sampler_state.end(), behind.begin(), behind.end());
    suggestion.sampler_state = std::move(sampler_state);
    return suggestion;
  }
};

}  // namespace

std::unique_ptr<Sampler> make_cmaes() {
  return std::make_unique<CmaesSampler>();
}

}  // namespace sinew::tune
