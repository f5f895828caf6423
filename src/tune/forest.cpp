#include "tune/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace sinew::tune {
namespace {

using Rows = std::vector<size_t>;

struct Split {
  double gain = 0;  // the decrease of the sum of squares
  size_t parameter = 0;
  Side left, right;
};

double mean_of(const Rows& rows, std::span<const double> values) {
  double sum = 0;
  for (const size_t row : rows) sum += values[row];
  return sum / static_cast<double>(rows.size());
}

// The decrease of the sum of squares when a group of `count` values with sum `sum` is split in two.
double gain_of(double left_sum, double left_count, double sum, double count) {
  const double right_sum = sum - left_sum, right_count = count - left_count;
  return left_sum * left_sum / left_count + right_sum * right_sum / right_count - sum * sum / count;
}

class Grower {
 public:
  Grower(const Space& space, std::span<const std::vector<double>> rows, std::span<const double> values,
         const ForestOptions& options, RandomStream random)
      : space_(space), rows_(rows), values_(values), options_(options), random_(random) {}

  Tree grow() {
    Rows sample(rows_.size());
    for (size_t& row : sample) row = random_.below(rows_.size());
    std::vector<Side> whole(space_.size());
    for (size_t i = 0; i < space_.size(); ++i) {
      if (is_category(i)) whole[i].choices.assign(static_cast<size_t>(space_.cells(i)), true);
    }
    std::vector<std::pair<Rows, std::vector<Side>>> open = {{std::move(sample), std::move(whole)}};
    Tree tree;
    while (!open.empty()) {
      auto [rows, box] = std::move(open.back());
      open.pop_back();
      const auto split = rows.size() < options_.fewest ? std::nullopt : best_split(rows, box);
      if (!split) {
        tree.push_back({std::move(box), mean_of(rows, values_)});
        continue;
      }
      Rows left, right;
      for (const size_t row : rows) (split->left.holds(rows_[row][split->parameter]) ? left : right).push_back(row);
      std::vector<Side> other = box;
      box[split->parameter] = split->left;
      other[split->parameter] = split->right;
      open.emplace_back(std::move(left), std::move(box));
      open.emplace_back(std::move(right), std::move(other));
    }
    return tree;
  }

 private:
  bool is_category(size_t i) const { return space_[i].kind == Parameter::Kind::categorical; }

  std::optional<Split> best_split(const Rows& rows, const std::vector<Side>& box) {
    std::vector<size_t> parameters(space_.size());
    std::iota(parameters.begin(), parameters.end(), size_t{0});
    for (size_t i = parameters.size(); i > 1; --i) std::swap(parameters[i - 1], parameters[random_.below(i)]);
    const auto considered =
        static_cast<size_t>(std::ceil(options_.considered * static_cast<double>(parameters.size())));
    std::optional<Split> best;
    for (size_t k = 0; k < parameters.size(); ++k) {
      if (k >= considered && best) break;
      const size_t i = parameters[k];
      if (std::ranges::any_of(rows, [&](size_t row) { return std::isnan(rows_[row][i]); })) continue;
      auto split = is_category(i) ? by_choices(rows, i, box[i]) : by_number(rows, i, box[i]);
      if (split && (!best || split->gain > best->gain)) best = std::move(split);
    }
    return best;
  }

  std::optional<Split> by_number(Rows rows, size_t i, const Side& side) {
    const auto unit = [&](size_t row) { return rows_[row][i]; };
    std::ranges::stable_sort(rows, {}, unit);
    const double sum = mean_of(rows, values_) * static_cast<double>(rows.size());
    const auto count = static_cast<double>(rows.size());
    double left = 0, most = 1e-12;
    std::optional<std::pair<double, double>> gap;
    for (size_t k = 0; k + 1 < rows.size(); ++k) {
      left += values_[rows[k]];
      if (unit(rows[k]) == unit(rows[k + 1])) continue;
      const double gain = gain_of(left, static_cast<double>(k + 1), sum, count);
      if (gain <= most) continue;
      most = gain;
      gap = {unit(rows[k]), unit(rows[k + 1])};
    }
    if (!gap) return std::nullopt;
    Split split{most, i, side, side};
    split.left.high = split.right.low = between(i, gap->first, gap->second);
    return split;
  }

  // Returns where to split between two neighbouring values. A parameter with evenly spaced values is split at the edge
  // of a grid step, any other parameter at a random place.
  double between(size_t i, double low, double high) {
    const auto cells = static_cast<double>(space_.cells(i));
    if (cells == 0 || space_[i].log) return std::max(random_.uniform(low, high), std::nextafter(low, 1));
    return std::ceil(low * cells) / cells;
  }

  std::optional<Split> by_choices(const Rows& rows, size_t i, const Side& side) {
    const size_t cells = side.choices.size();
    std::vector<double> sums(cells), counts(cells);
    for (const size_t row : rows) {
      const auto choice = static_cast<size_t>(rows_[row][i] * static_cast<double>(cells));
      sums[choice] += values_[row];
      counts[choice] += 1;
    }
    std::vector<size_t> order;
    for (size_t c = 0; c < cells; ++c) {
      if (counts[c] > 0) order.push_back(c);
    }
    std::ranges::stable_sort(order, {}, [&](size_t c) { return sums[c] / counts[c]; });
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    double left_sum = 0, left_count = 0, most = 1e-12;
    size_t taken = 0;
    for (size_t k = 0; k + 1 < order.size(); ++k) {
      left_sum += sums[order[k]];
      left_count += counts[order[k]];
      const double gain = gain_of(left_sum, left_count, sum, static_cast<double>(rows.size()));
      if (gain <= most) continue;
      most = gain;
      taken = k + 1;
    }
    if (taken == 0) return std::nullopt;
    Split split{most, i, side, side};
    for (size_t c = 0; c < cells; ++c) {  // a choice that no row of this node has goes to a random side
      const auto place = static_cast<size_t>(std::ranges::find(order, c) - order.begin());
      const bool to_left = place < order.size() ? place < taken : random_.uniform() < 0.5;
      (to_left ? split.right : split.left).choices[c] = false;
    }
    return split;
  }

  const Space& space_;
  std::span<const std::vector<double>> rows_;
  std::span<const double> values_;
  const ForestOptions& options_;
  RandomStream random_;
};

}  // namespace

double Side::fraction() const {
  if (choices.empty()) return high - low;
  return static_cast<double>(std::ranges::count(choices, true)) / static_cast<double>(choices.size());
}

bool Side::holds(double unit) const {
  if (choices.empty()) return unit >= low && (unit < high || high == 1);
  return choices[std::min(static_cast<size_t>(unit * static_cast<double>(choices.size())), choices.size() - 1)];
}

double Leaf::volume() const {
  double product = 1;
  for (const Side& side : box) product *= side.fraction();
  return product;
}

std::vector<Tree> grow_forest(const Space& space, std::span<const std::vector<double>> rows,
                              std::span<const double> values, RandomKey key, const ForestOptions& options) {
  SINEW_CHECK(!rows.empty() && rows.size() == values.size(), rows.size(), values.size());
  std::vector<Tree> forest;
  for (int t = 0; t < options.trees; ++t) {
    const RandomStream random(derive(key, static_cast<uint64_t>(t)));
    forest.push_back(Grower(space, rows, values, options, random).grow());
  }
  return forest;
}

}  // namespace sinew::tune
