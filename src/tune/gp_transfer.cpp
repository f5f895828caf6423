#include "tune/gp_transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr size_t kMostRows = 100;   // of all earlier studies together
constexpr size_t kMostStudies = 8;  // the first ones
constexpr double kTie = 0.5;        // of a pair for two equal predictions

// The best half of what there is room for, and an even part of the rest.
std::vector<size_t> chosen_rows(const EarlierStudy& study, size_t room) {
  std::vector<size_t> order(study.losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return study.losses[i]; });
  if (order.size() <= room) return order;
  std::vector<size_t> chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(room / 2));
  const size_t rest = order.size() - chosen.size(), wanted = room - chosen.size();
  for (size_t k = 0; k < wanted; ++k) chosen.push_back(order[room / 2 + k * rest / wanted]);
  return chosen;
}

// Pairs that the predictions have in the wrong order, of one of the better half and any other.
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

bool knows_earlier(const Study& study) {
  if (study.objectives() > 1) return false;
  for (const int64_t id : study.told()) {
    if (!study.trial(id).constraints.empty()) return false;
  }
  return std::ranges::any_of(study.options().earlier, [](const auto& earlier) { return !earlier.losses.empty(); });
}

JointModel joint_model_of(const std::vector<EarlierStudy>& earlier, std::vector<Axis> axes, const Points& points,
                          std::vector<double> losses, double trials, const Remembered* memory) {
  const Index d = points.cols();
  std::vector<const EarlierStudy*> studies;
  for (const EarlierStudy& study : earlier) {
    if (!study.losses.empty() && studies.size() < kMostStudies) studies.push_back(&study);
  }
  std::vector<VectorXd> rows;
  for (size_t s = 0; s < studies.size(); ++s) {
    for (const size_t i : chosen_rows(*studies[s], kMostRows / studies.size())) {
      VectorXd row(d + 1);
      row << Eigen::Map<const VectorXd>(studies[s]->units[i].data(), d), static_cast<double>(s + 1);
      rows.push_back(std::move(row));
      losses.push_back(studies[s]->losses[i]);
    }
  }
  const Index own = points.rows();
  Points all(own + static_cast<Index>(rows.size()), d + 1);
  all.topLeftCorner(own, d) = points;
  all.col(d).head(own).setZero();  // this study
  for (size_t k = 0; k < rows.size(); ++k) all.row(own + static_cast<Index>(k)) = rows[k].transpose();
  axes.push_back({true});
  // Fitted as seldom as if the earlier trials were this study's own.
  const Remembered fit = Fitter(axes, all, trials + static_cast<double>(rows.size()), memory).fit(losses, true);
  JointModel model{fit, GaussianProcess(axes, fit.logs, all, warp(losses, fit.warp).values)};
  model.process.set_context(VectorXd::Zero(1));
  return model;
}

bool ranks_better(const GaussianProcess& joint, const GaussianProcess& alone, const std::vector<double>& losses) {
  return misranked(joint, losses) <= misranked(alone, losses);
}

}  // namespace sinew::tune
