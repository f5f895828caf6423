// Compares fronts, volumes and boxes with results of counting, and the expected improvement with random draws.
#include "tune/multi_objective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace sinew::tune {
namespace {

// Points on a coarse lattice, so that many share a coordinate.
std::vector<Objectives> lattice_points(uint64_t seed, size_t count, size_t objectives, uint64_t cells) {
  RandomStream random(random_key({seed}));
  std::vector<Objectives> points(count, Objectives(objectives));
  for (Objectives& point : points) {
    for (double& value : point) value = static_cast<double>(random.below(cells));
  }
  return points;
}

// The number of unit cells below `cells` that some point dominates.
double counted_volume(const std::vector<Objectives>& points, size_t objectives, uint64_t cells) {
  size_t total = 1, covered = 0;
  for (size_t k = 0; k < objectives; ++k) total *= cells;
  for (size_t cell = 0; cell < total; ++cell) {
    covered += std::ranges::any_of(points, [&](const Objectives& point) {
      size_t rest = cell;
      for (size_t k = 0; k < objectives; ++k, rest /= cells) {
        if (point[k] > static_cast<double>(rest % cells)) return false;
      }
      return true;
    });
  }
  return static_cast<double>(covered);
}

TEST(Hypervolume, MatchesACountOfUnitCells) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const size_t objectives : {size_t{1}, size_t{2}, size_t{3}, size_t{4}}) {
      const std::vector<Objectives> points = lattice_points(seed, seed % 9, objectives, 6);
      const Objectives reference(objectives, 5.0);  // some points lie on the reference or beyond
      EXPECT_NEAR(hypervolume(points, reference), counted_volume(points, objectives, 5), 1e-9)
          << seed << ' ' << objectives;
    }
  }
}

TEST(FreeBoxes, AreDisjointAndCoverTheUndominatedRegion) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Objectives> points = lattice_points(seed, 8, 3, 7);
    const std::vector<Box> boxes = free_boxes(points, {6, 6, 6});
    RandomStream random(random_key({seed, 1}));
    for (int k = 0; k < 200; ++k) {
      const Objectives y = {random.uniform(-2, 7), random.uniform(-2, 7), random.uniform(-2, 7)};
      const bool inside = std::ranges::all_of(y, [](double value) { return value < 6; });
      const bool beaten = std::ranges::any_of(points, [&](const Objectives& p) { return dominates(p, y); });
      const auto holding = std::ranges::count_if(boxes, [&](const Box& box) {
        for (size_t i = 0; i < 3; ++i) {
          if (y[i] <= box.low[i] || y[i] >= box.high[i]) return false;
        }
        return true;
      });
      EXPECT_EQ(holding, inside && !beaten ? 1 : 0) << seed;
    }
  }
}

TEST(Front, HasOnlyUndominatedPointsAndRanksPeelFronts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Objectives> left = lattice_points(seed, 25, 2 + seed % 2, 5);
    const std::vector<size_t> ranks = ranks_of(left);
    for (size_t i = 0; i < left.size(); ++i) {
      // The rank of a point is the length of the longest chain of points, each dominating the next, that ends in it.
      size_t above = 0;
      bool dominated = false;
      for (size_t j = 0; j < left.size(); ++j) {
        if (!dominates(left[j], left[i])) continue;
        dominated = true;
        above = std::max(above, ranks[j] + 1);
      }
      EXPECT_EQ(ranks[i], above);
      const std::vector<size_t> front = front_of(left);
      const bool equal_before = std::ranges::find(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(i),
                                                  left[i]) != left.begin() + static_cast<std::ptrdiff_t>(i);
      EXPECT_EQ(std::ranges::count(front, i), !dominated && !equal_before ? 1 : 0);
    }
  }
}

TEST(LogHypervolumeImprovement, MatchesTheMeanOfRandomDraws) {
  const std::vector<Objectives> front = {{-1, 0.6, 0}, {0, -0.5, 0.3}, {0.7, -1, -0.4}};
  for (const size_t m : {size_t{2}, size_t{3}}) {
    std::vector<GaussianProcess> processes;
    for (uint64_t k = 0; k < m; ++k) {
      RandomStream random(random_key({k + 50}));
      Points points(6, 1);
      Eigen::VectorXd values(6), logs(4);
      for (Eigen::Index i = 0; i < 6; ++i) points(i, 0) = random.uniform(), values[i] = random.normal();
      logs << -0.5, -5, -0.3, -1;
      processes.emplace_back(std::vector<Axis>(1), logs, points, values);
    }
    std::vector<Objectives> known;
    for (const Objectives& point : front)
      known.emplace_back(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(m));
    const Objectives reference(m, 1.2);
    const LogHypervolumeImprovement gain(processes, free_boxes(known, reference));
    const double before = hypervolume(known, reference);
    for (const double at : {0.1, 0.45, 0.9}) {
      const Eigen::VectorXd x = Eigen::VectorXd::Constant(1, at);
      RandomStream random(random_key({7}));
      double sum = 0, squares = 0;
      constexpr int kDraws = 5000;
      for (int i = 0; i < kDraws; ++i) {
        std::vector<Objectives> more = known;
        more.emplace_back(m);
        for (size_t k = 0; k < m; ++k) {
          const Normal normal = processes[k].at(x);
          more.back()[k] = normal.mean + std::sqrt(normal.variance) * random.normal();
        }
        const double grown = hypervolume(more, reference) - before;
        sum += grown, squares += grown * grown;
      }
      const double mean = sum / kDraws, error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
      Eigen::VectorXd slope(1);
      EXPECT_NEAR(std::exp(gain.at(x, slope)), mean, 5 * error + 1e-6) << at;
    }
  }
}

}  // namespace
}  // namespace sinew::tune
