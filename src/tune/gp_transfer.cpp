#include "tune/gp_transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kMostRows = 100;   // the most rows of all earlier studies together
constexpr size_t kMostStudies = 8;  // the most earlier studies; only the first ones are used
constexpr double kTie = 0.5;        // a pair with equal predictions counts as half wrong

// The points of the earlier studies, with the number of their study as the last coordinate.
struct EarlierPoints {
  Points points;
  std::vector<double> losses;
  Index studies = 0;
};

bool usable(const EarlierStudy& study) {
  return !study.losses.empty();
}

// Takes from each study its best trial, and of the others an even sample by rank. The best trials alone lie close
// together. A Gaussian process that knows only those does not learn how the landscape looks further away.
EarlierPoints points_of(const std::vector<EarlierStudy>& earlier, Index axes) {
  std::vector<const EarlierStudy*> studies;
  for (const EarlierStudy& study : earlier) {
    if (usable(study) && studies.size() < kMostStudies) studies.push_back(&study);
  }
  EarlierPoints all{Points(kMostRows, axes + 1), {}, static_cast<Index>(studies.size())};
  for (size_t s = 0; s < studies.size(); ++s) {
    const EarlierStudy& study = *studies[s];
    std::vector<size_t> order(study.losses.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return study.losses[i]; });
    const size_t rows = std::min(order.size(), kMostRows / studies.size());
    for (size_t k = 0; k < rows; ++k) {
      const size_t i = order[k * order.size() / rows];
      all.points.row(static_cast<Index>(all.losses.size()))
          << Eigen::Map<const Eigen::RowVectorXd>(study.points[i].data(), axes),
          static_cast<double>(s + 1);
      all.losses.push_back(study.losses[i]);
    }
  }
  all.points.conservativeResize(static_cast<Index>(all.losses.size()), Eigen::NoChange);
  return all;
}

// Counts the pairs that the leave-one-out predictions put in the wrong order. Ignores a pair if both trials are in the
// worse half.
double misranked(const GaussianProcess& process, const std::vector<double>& losses) {
  const std::vector<Normal> without = process.without_each();
  std::vector<double> sorted = losses;
  std::ranges::sort(sorted);
  const double middle = sorted[sorted.size() / 2];
  double wrong = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    for (size_t j = i + 1; j < losses.size(); ++j) {
      if (losses[i] == losses[j] || std::min(losses[i], losses[j]) > middle) continue;
      const double apart = without[i].mean - without[j].mean;
      wrong += apart == 0 ? kTie : (apart < 0) != (losses[i] < losses[j]);
    }
  }
  return wrong;
}

}  // namespace

Index usable_earlier_studies(const Study& study) {
  if (study.objectives() > 1) return 0;
  for (const int64_t id : study.observed()) {
    if (!study.trial(id).constraints.empty()) return 0;
  }
  const auto usable_ones = static_cast<size_t>(std::ranges::count_if(study.options().earlier, usable));
  return static_cast<Index>(std::min(usable_ones, kMostStudies));
}

size_t JointFit::size(Index axes, Index studies) {
  return FitRecord::size(KernelLayout{axes + 1}.size()) + Alignment::size(axes, studies);
}

JointFit JointFit::read(std::span<const double> sampler_state, Index axes) {
  const Index numbers = KernelLayout{axes + 1}.size();
  return {FitRecord::read(sampler_state, numbers),
          Alignment::read(sampler_state.subspan(FitRecord::size(numbers)), axes)};
}

void JointFit::write(std::vector<double>& sampler_state) const {
  numbers.write(sampler_state);
  alignment.write(sampler_state);
}

JointModel joint_model_of(const std::vector<EarlierStudy>& earlier, const std::vector<Axis>& axes, const Points& points,
                          std::vector<double> losses, double trials, const JointFit* memory) {
  const Index d = points.cols(), own = points.rows();
  const EarlierPoints others = points_of(earlier, d);
  Points all(own + others.points.rows(), d + 1);
  all.topLeftCorner(own, d) = points;
  all.col(d).head(own).setZero();  // study 0 is this study
  all.bottomRows(others.points.rows()) = others.points;
  losses.insert(losses.end(), others.losses.begin(), others.losses.end());
  const std::vector<Axis> all_axes = with_study(axes);

  JointFit fit;
  fit.alignment =
      memory ? memory->alignment : align_earlier_studies(axes, others.points, others.losses, others.studies);
  // Counts the trials of earlier studies too. Full fits are then as rare as if all trials belonged to this study.
  const Points before = aligned(all, fit.alignment);
  const Fitter fitter(all_axes, before, trials + static_cast<double>(others.losses.size()),
                      memory ? &memory->numbers : nullptr);
  fit.numbers = fitter.fit(losses, true);
  const VectorXd values = warp(losses, fit.numbers.warp).values;
  fit.alignment =
      align_with_study(axes, Kernel(all_axes, fit.numbers.log_parameters), all, values, std::move(fit.alignment));
  JointModel model{fit, GaussianProcess(all_axes, fit.numbers.log_parameters, aligned(all, fit.alignment), values)};
  model.process.set_context(VectorXd::Zero(1));
  return model;
}

bool ranks_better(const GaussianProcess& joint, const GaussianProcess& alone, const std::vector<double>& losses) {
  return misranked(joint, losses) <= misranked(alone, losses);
}

}  // namespace sinew::tune
