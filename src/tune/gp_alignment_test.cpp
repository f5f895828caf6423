// Shifts equal landscapes apart and checks that the alignment moves them back.
#include "tune/gp_alignment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tune/gp_fitter.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr Index kAlignedAxes = 3;  // two numbers and a category
const std::vector<Axis> kKinds = {{false}, {false}, {true}};
constexpr double kShifts[][2] = {{0, 0}, {0.1, -0.05}, {-0.08, 0.12}};  // offset of each minimum from (0.5, 0.5)

// Two crossing valleys and a ripple; one choice is slightly worse.
double landscape(double x, double y, double choice) {
  return std::abs(x) + 3 * y * y + 0.6 * (x + y) * (x + y) + 0.03 * std::cos(25 * x) + 0.1 * choice;
}

struct Known {
  Points points;
  std::vector<double> losses;
};

// Some trials of each study; the last column is the number of the study.
Known trials_of(const std::vector<int>& studies, Index each, uint64_t seed) {
  RandomStream random(random_key({seed}));
  Known known{Points(each * static_cast<Index>(studies.size()), kAlignedAxes + 1), {}};
  for (Index i = 0; i < known.points.rows(); ++i) {
    const int study = studies[static_cast<size_t>(i / each)];
    const double x = random.uniform(), y = random.uniform(), choice = random.uniform() < 0.5 ? 0 : 1;
    known.points.row(i) << x, y, choice, study;
    known.losses.push_back(landscape(x - 0.5 - kShifts[study][0], y - 0.5 - kShifts[study][1], choice));
  }
  return known;
}

TEST(Alignment, FindsTheShiftsBetweenStudies) {
  double own_shifts = 0, common_shift = 0;  // mean squared errors
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Known others = trials_of({1, 2}, 30, seed);
    Alignment alignment = align_earlier_studies(kKinds, others.points, others.losses, 2);
    ASSERT_EQ(alignment.own_shifts.size(), 2 * kAlignedAxes);
    for (Index axis = 0; axis < 2; ++axis) {
      const double apart = alignment.own_shifts[kAlignedAxes + axis] - alignment.own_shifts[axis];
      own_shifts += std::pow(apart - (kShifts[1][axis] - kShifts[2][axis]), 2) / 10;
      EXPECT_EQ(alignment.common_shift[axis], 0);
    }

    Known all = trials_of({0}, 12, seed + 100);
    Points points(all.points.rows() + others.points.rows(), kAlignedAxes + 1);
    points << all.points, others.points;
    all.losses.insert(all.losses.end(), others.losses.begin(), others.losses.end());
    const std::vector<Axis> all_axes = with_study(kKinds);
    const Points before = aligned(points, alignment);
    const FitRecord fit = Fitter(all_axes, before, 72, nullptr).fit(all.losses, true);
    const Kernel kernel(all_axes, fit.log_parameters);
    alignment = align_with_study(kKinds, kernel, points, warp(all.losses, fit.warp).values, alignment);
    for (Index axis = 0; axis < 2; ++axis) {
      for (Index study = 0; study < 2; ++study) {
        const double moved = alignment.own_shifts[study * kAlignedAxes + axis] + alignment.common_shift[axis];
        common_shift += std::pow(moved + kShifts[study + 1][axis], 2) / 20;
      }
    }
    const Points there = aligned(points, alignment);
    EXPECT_EQ(there.topRows(12), points.topRows(12)) << "this study's stay";
    EXPECT_EQ(there.col(2), points.col(2)) << "categories stay";
    EXPECT_EQ(there.col(3), points.col(3));
  }
  EXPECT_LT(std::sqrt(own_shifts), 0.05) << "0.175 where nothing is moved";
  EXPECT_LT(std::sqrt(common_shift), 0.045) << "0.091 where nothing is moved";
}

TEST(Alignment, InactiveParametersStayInactiveAndMoveNothing) {
  Known others = trials_of({1, 2}, 20, 9);
  for (Index i = 0; i < others.points.rows(); ++i) {
    if (others.points(i, 3) == 1) others.points(i, 1) = std::nan("");
  }
  others.losses[3] = std::numeric_limits<double>::infinity();  // a failed trial
  const Alignment alignment = align_earlier_studies(kKinds, others.points, others.losses, 2);
  EXPECT_TRUE(alignment.own_shifts.allFinite());
  const Points there = aligned(others.points, alignment);
  for (Index i = 0; i < there.rows(); ++i) EXPECT_EQ(std::isnan(there(i, 1)), others.points(i, 3) == 1) << i;
}

TEST(Alignment, ReadsBackWhatItWrote) {
  const Alignment alignment{VectorXd::Random(2 * kAlignedAxes), VectorXd::Random(kAlignedAxes)};
  std::vector<double> sampler_state;
  alignment.write(sampler_state);
  ASSERT_EQ(sampler_state.size(), Alignment::size(kAlignedAxes, 2));
  const Alignment again = Alignment::read(sampler_state, kAlignedAxes);
  EXPECT_EQ(again.own_shifts, alignment.own_shifts);
  EXPECT_EQ(again.common_shift, alignment.common_shift);
}

}  // namespace
}  // namespace sinew::tune
