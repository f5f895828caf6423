#include "tune/multi_objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinew::tune {
namespace {

// Appends the free boxes along the first `depth` objectives. All points are better than the reference point in these
// objectives.
void cut(std::vector<Objectives> points, size_t depth, Box& box, const Objectives& reference, std::vector<Box>& boxes) {
  const size_t last = depth - 1;
  std::ranges::stable_sort(points, {}, [&](const Objectives& point) { return point[last]; });
  if (depth == 1) {
    box.low[0] = -std::numeric_limits<double>::infinity();
    box.high[0] = points.empty() ? reference[0] : std::min(reference[0], points.front()[0]);
    if (box.high[0] > box.low[0]) boxes.push_back(box);
    return;
  }
  std::vector<Objectives> below;  // the points that dominate in the current slice
  double from = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i <= points.size(); ++i) {
    const double to = i < points.size() ? points[i][last] : reference[last];
    if (to > from) {
      box.low[last] = from;
      box.high[last] = to;
      cut(below, last, box, reference, boxes);
      from = to;
    }
    if (i < points.size()) below.push_back(points[i]);
  }
}

std::vector<Objectives> within(const std::vector<Objectives>& points, const Objectives& reference) {
  std::vector<Objectives> inside;
  for (const Objectives& point : points) {
    bool below = true;
    for (size_t k = 0; k < reference.size(); ++k) below &= point[k] < reference[k];
    if (below) inside.push_back(point);
  }
  return inside;
}

}  // namespace

bool dominates(const Objectives& a, const Objectives& b) {
  bool better = false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] > b[k]) return false;
    better |= a[k] < b[k];
  }
  return better;
}

std::vector<size_t> front_of(const std::vector<Objectives>& all) {
  std::vector<size_t> front;
  for (size_t i = 0; i < all.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < all.size() && !beaten; ++j) {
      beaten = dominates(all[j], all[i]) || (j < i && all[j] == all[i]);
    }
    if (!beaten) front.push_back(i);
  }
  return front;
}

std::vector<size_t> ranks_of(const std::vector<Objectives>& all) {
  std::vector<size_t> ranks(all.size(), 0), beaters(all.size(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Objectives& other : all) beaters[i] += dominates(other, all[i]);
  }
  std::vector<size_t> now;
  for (size_t i = 0; i < all.size(); ++i) {
    if (beaters[i] == 0) now.push_back(i);
  }
  for (size_t rank = 1; !now.empty(); ++rank) {
    std::vector<size_t> next;
    for (const size_t i : now) {
      for (size_t j = 0; j < all.size(); ++j) {
        if (!dominates(all[i], all[j]) || --beaters[j] > 0) continue;
        ranks[j] = rank;
        next.push_back(j);
      }
    }
    now = std::move(next);
  }
  return ranks;
}

double hypervolume(const std::vector<Objectives>& points, const Objectives& reference) {
  const std::vector<Objectives> inside = within(points, reference);
  if (inside.empty()) return 0;
  Objectives ideal = inside[0];
  for (const Objectives& point : inside) {
    for (size_t k = 0; k < ideal.size(); ++k) ideal[k] = std::min(ideal[k], point[k]);
  }
  double volume = 1;
  for (size_t k = 0; k < ideal.size(); ++k) volume *= reference[k] - ideal[k];
  for (const Box& box : free_boxes(inside, reference)) {
    double free = 1;
    for (size_t k = 0; k < ideal.size(); ++k) free *= std::max(0.0, box.high[k] - std::max(box.low[k], ideal[k]));
    volume -= free;
  }
  return volume;
}

std::vector<Box> free_boxes(const std::vector<Objectives>& points, const Objectives& reference) {
  std::vector<Objectives> inside = within(points, reference), front;
  for (const size_t i : front_of(inside)) front.push_back(inside[i]);
  Box box{Objectives(reference.size()), Objectives(reference.size())};
  std::vector<Box> boxes;
  cut(front, reference.size(), box, reference, boxes);
  return boxes;
}

}  // namespace sinew::tune
