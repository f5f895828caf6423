// Implements the statistics that compare two samples, or a column with the targets.
#include "train/sanity_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sinew::train::sanity {
namespace {

constexpr size_t kFewestCounted = 50;
constexpr double kMostSteps = 20;  // for each value; a counter with more gaps looks like any number

}  // namespace

double distribution_distance(std::vector<float> a, std::vector<float> b) {
  if (a.empty() || b.empty()) return 0;
  std::ranges::sort(a);
  std::ranges::sort(b);
  size_t i = 0, k = 0;
  double largest = 0;
  while (i < a.size() && k < b.size()) {
    const float value = std::min(a[i], b[k]);
    while (i < a.size() && a[i] == value) ++i;
    while (k < b.size() && b[k] == value) ++k;
    largest = std::max(largest, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                         static_cast<double>(k) / static_cast<double>(b.size())));
  }
  return largest;
}

double distance_by_chance(size_t a, size_t b, double probability) {
  const auto n = static_cast<double>(a), m = static_cast<double>(b);
  return std::sqrt(-std::log(probability / 2) / 2 * (n + m) / (n * m));
}

double share_distance(std::span<const int64_t> a, std::span<const int64_t> b) {
  const auto n = static_cast<double>(std::accumulate(a.begin(), a.end(), int64_t{0})),
             m = static_cast<double>(std::accumulate(b.begin(), b.end(), int64_t{0}));
  if (n == 0 || m == 0) return 0;
  double sum = 0;
  for (size_t c = 0; c < std::min(a.size(), b.size()); ++c)
    sum += std::abs(static_cast<double>(a[c]) / n - static_cast<double>(b[c]) / m);
  return sum / 2;
}

double shares_by_chance(std::span<const int64_t> a, std::span<const int64_t> b) {
  const auto n = static_cast<double>(std::accumulate(a.begin(), a.end(), int64_t{0})),
             m = static_cast<double>(std::accumulate(b.begin(), b.end(), int64_t{0}));
  if (n == 0 || m == 0) return 1;
  // The difference of a share p has the deviation sqrt(p (1 - p) (1/n + 1/m)). The sum over the classes of its mean
  // size is a bound of the mean; three deviations of a sum of this kind are added.
  const double factor = 1 / n + 1 / m;
  double mean = 0;
  for (size_t c = 0; c < std::min(a.size(), b.size()); ++c) {
    const double p = static_cast<double>(a[c] + b[c]) / (n + m);
    mean += std::sqrt(p * (1 - p) * factor) * 0.4;
  }
  return mean + 1.5 * std::sqrt(factor);
}

double share_above(std::vector<float> a, std::vector<float> b) {
  if (a.empty() || b.empty()) return 0.5;
  std::ranges::sort(a);
  double above = 0;
  for (const float value : b) {
    const auto below = std::ranges::lower_bound(a, value) - a.begin(),
               not_above = std::ranges::upper_bound(a, value) - a.begin();
    above += static_cast<double>(below + not_above) / 2;
  }
  return above / static_cast<double>(a.size()) / static_cast<double>(b.size());
}

bool counts_up(std::vector<float> values) {
  if (values.size() < kFewestCounted) return false;
  std::ranges::sort(values);
  std::vector<double> gaps;
  for (size_t i = 1; i < values.size(); ++i) {
    const double gap = static_cast<double>(values[i]) - values[i - 1];
    if (gap > 0) gaps.push_back(gap);
  }
  const auto rows = static_cast<double>(values.size());
  if (static_cast<double>(gaps.size()) < 0.99 * (rows - 1)) return false;
  const double step = *std::ranges::min_element(gaps);
  if (static_cast<double>(values.back()) - values.front() > kMostSteps * rows * step) return false;
  const auto even =
      std::ranges::count_if(gaps, [&](double gap) { return std::abs(gap / step - std::round(gap / step)) < 0.2; });
  return static_cast<double>(even) >= 0.98 * static_cast<double>(gaps.size());
}

double change_in_order(std::span<const float> values, std::span<const double> targets, bool classes) {
  if (values.size() < 2) return 1;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
  const auto change = [&](double a, double b) { return classes ? (a != b ? 1.0 : 0.0) : (a - b) * (a - b); };
  const auto n = static_cast<double>(values.size());
  double found = 0, usual = 0;
  for (size_t i = 1; i < order.size(); ++i) found += change(targets[order[i]], targets[order[i - 1]]);
  if (classes) {
    std::map<double, double> counts;
    for (const double target : targets) ++counts[target];
    usual = 1;
    for (const auto& [target, count] : counts) usual -= count * (count - 1) / n / (n - 1);
  } else {
    const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / n;
    for (const double target : targets) usual += 2 * (target - mean) * (target - mean) / (n - 1);
  }
  return usual > 0 ? found / (n - 1) / usual : 1;
}

}  // namespace sinew::train::sanity
