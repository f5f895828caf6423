#include "tune/tpe_density.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace sinew::tune {
namespace {

constexpr double kLeastWidth = 0.03;  // the smallest width of a kernel, as a fraction of the range
constexpr double kMostWidth = 1.0;
constexpr double kChoiceSpread = 0.4;  // the part of a choice's kernel that is spread evenly over all choices

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z * std::numbers::sqrt2 / 2);
}

// Draws from a normal distribution until the value is in [0, 1]. `center` is in this interval, so each draw succeeds
// with a probability of at least a third.
double truncated_normal(double center, double width, RandomStream& random) {
  for (int i = 0; i < 64; ++i) {
    const double u = center + width * random.normal();
    if (u >= 0 && u <= 1) return u;
  }
  return center;
}

// A table of the normal distribution function. It saves time: the fit needs, for every kernel of every parameter, the
// mass within [0, 1].
class NormalTable {
 public:
  NormalTable() {
    for (size_t i = 0; i < kCells + 2; ++i)
      values_[i] = static_cast<float>(normal_cdf(static_cast<double>(i) * kEnd / kCells));
  }
  float cdf(float z) const {  // z >= 0
    const float index = std::min(z, static_cast<float>(kEnd)) * kCellsPerUnit;
    const auto cell = static_cast<size_t>(index);
    const float rest = index - static_cast<float>(cell);
    return values_[cell] + rest * (values_[cell + 1] - values_[cell]);
  }

 private:
  static constexpr int kCellsPerUnit = 256, kEnd = 8, kCells = kCellsPerUnit * kEnd;
  float values_[kCells + 2];
};
const NormalTable kNormal;

// exp(x) for x <= 0, without a call, so that the compiler vectorises loops over it; relative error below 2e-6.
inline float fast_exp(float x) {
  x = x > -87.0f ? x : -87.0f;
  const float scaled = x * std::numbers::log2e_v<float>;
  const float whole = static_cast<float>(static_cast<int32_t>(scaled - 0.5f));
  const float f = (scaled - whole) * std::numbers::ln2_v<float>;
  const float power =
      1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.041666668f + f * (0.0083333f + f * 0.0013889f)))));
  const auto bits = static_cast<uint32_t>((static_cast<int32_t>(whole) + 127) << 23);
  return power * std::bit_cast<float>(bits);
}

// Sets widths[i] to the larger of the two gaps between values[i] and its neighbours in sorted order. A single value has
// no neighbour and gets 1. Sorts by the values in units of 1/65536, which is finer than any kernel.
void widths_by_gaps(const std::vector<float>& values, std::vector<float>& widths) {
  struct Neighbour {
    uint16_t key;
    uint16_t index;
  };
  static constexpr size_t kMost = 1 << 16;
  const size_t n = std::min(values.size(), kMost);
  widths.assign(values.size(), 1.0f);
  if (n < 2) return;
  std::vector<Neighbour> sorted(n), spare(n);
  for (size_t i = 0; i < n; ++i) {
    sorted[i] = {static_cast<uint16_t>(std::min(values[i] * 65536.0f, 65535.0f)), static_cast<uint16_t>(i)};
  }
  for (const int shift : {0, 8}) {  // radix sort
    uint32_t starts[257] = {};
    for (const Neighbour& p : sorted) ++starts[((p.key >> shift) & 255) + 1];
    for (int i = 0; i < 256; ++i) starts[i + 1] += starts[i];
    for (const Neighbour& p : sorted) spare[starts[(p.key >> shift) & 255]++] = p;
    sorted.swap(spare);
  }
  for (size_t i = 0; i < n; ++i) {
    const float here = values[sorted[i].index];
    const float left = i > 0 ? here - values[sorted[i - 1].index] : 0;
    const float right = i + 1 < n ? values[sorted[i + 1].index] - here : 0;
    widths[sorted[i].index] = std::max({left, right, 0.0f});
  }
}

}  // namespace

TpeDensity::TpeDensity(const Space& space, const Columns& columns, std::span<const int32_t> rows,
                       std::span<const double> weights, double prior_weight)
    : columns_(space.size()) {
  double total = 0;
  for (const double weight : weights) cumulative_.push_back(total += weight);
  cumulative_.push_back(total += prior_weight);
  for (const double weight : weights) log_weights_.push_back(static_cast<float>(std::log(weight / total)));
  log_weights_.push_back(static_cast<float>(std::log(prior_weight / total)));
  for (size_t i = 0; i < space.size(); ++i) {
    if (space[i].ordered()) {
      fit_numbers(space, i, columns[i], rows);
    } else {
      fit_choices(space, i, columns[i], rows);
    }
  }
}

void TpeDensity::fit_numbers(const Space& space, size_t parameter, const std::vector<float>& values,
                             std::span<const int32_t> rows) {
  Column& column = columns_[parameter];
  const size_t n = rows.size() + 1;
  column.center.assign(n, 0);
  column.scale.assign(n, 0);
  column.height.assign(n, 0);
  std::vector<float> present, widths;
  for (const int32_t row : rows) {
    if (!std::isnan(values[static_cast<size_t>(row)])) present.push_back(values[static_cast<size_t>(row)]);
  }
  widths_by_gaps(present, widths);
  const int64_t cells = space.cells(parameter);
  const double least = std::max(kLeastWidth, cells > 0 ? 0.5 / static_cast<double>(cells) : 0);
  size_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const float center = values[static_cast<size_t>(rows[i])];
    if (std::isnan(center)) continue;
    const float width = std::clamp(widths[at++], static_cast<float>(least), static_cast<float>(kMostWidth));
    const float mass = kNormal.cdf((1 - center) / width) + kNormal.cdf(center / width) - 1;
    column.center[i] = center;
    column.scale[i] = 1 / width;
    column.height[i] = -std::log(width * mass * 2.5066283f);
  }
}

// Sets `center` to the position of the choice, `height` to the log density at it, and `scale` to the log density at the
// other choices. Both densities are relative to the uniform density.
void TpeDensity::fit_choices(const Space& space, size_t parameter, const std::vector<float>& values,
                             std::span<const int32_t> rows) {
  Column& column = columns_[parameter];
  const size_t n = rows.size() + 1;
  const auto k = static_cast<double>(space.cells(parameter));
  const double other = kChoiceSpread / k, match = 1 - kChoiceSpread + other;
  column.center.assign(n, -1);
  column.scale.assign(n, 0);
  column.height.assign(n, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const float center = values[static_cast<size_t>(rows[i])];
    if (std::isnan(center)) continue;
    column.center[i] = center;
    column.height[i] = static_cast<float>(std::log(match * k));
    column.scale[i] = static_cast<float>(std::log(other * k));
  }
}

double TpeDensity::log_density(const Space& space, std::span<const float> unit) const {
  const size_t n = log_weights_.size();
  std::vector<float> terms = log_weights_;
  float* __restrict out = terms.data();
  for (size_t d = 0; d < columns_.size(); ++d) {
    const float u = unit[d];
    if (std::isnan(u)) continue;
    const float* __restrict center = columns_[d].center.data();
    const float* __restrict scale = columns_[d].scale.data();
    const float* __restrict height = columns_[d].height.data();
    if (space[d].ordered()) {
      for (size_t i = 0; i < n; ++i) {
        const float z = (u - center[i]) * scale[i];
        out[i] += height[i] - 0.5f * z * z;
      }
    } else {
      for (size_t i = 0; i < n; ++i) {
        const float match = height[i], other = scale[i];
        out[i] += u == center[i] ? match : other;
      }
    }
  }
  float tops[8], sums[8] = {};  // eight partial results for vectorised loops; they are combined in a fixed order
  for (float& top : tops) top = out[0];
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) tops[j] = tops[j] > out[i + j] ? tops[j] : out[i + j];
  }
  float most = *std::ranges::max_element(tops);
  for (; i < n; ++i) most = std::max(most, out[i]);
  for (i = 0; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += fast_exp(out[i + j] - most);
  }
  double sum = 0;
  for (; i < n; ++i) sum += fast_exp(out[i] - most);
  for (const float part : sums) sum += part;
  return most + std::log(sum);
}

Point TpeDensity::draw(const Space& space, RandomStream& random) const {
  const double lot = random.uniform() * cumulative_.back();
  const size_t row = static_cast<size_t>(std::ranges::upper_bound(cumulative_, lot) - cumulative_.begin());
  Point point(space.size(), kInactive);
  for (size_t d = 0; d < space.size(); ++d) {
    const double luck = random.uniform();
    if (!space.active(d, point)) continue;
    const Column& column = columns_[d];
    double unit = luck;
    if (row < log_weights_.size() - 1 && space[d].ordered() && column.scale[row] > 0) {
      unit = truncated_normal(column.center[row], 1 / column.scale[row], random);
    } else if (row < log_weights_.size() - 1 && !space[d].ordered() && column.center[row] >= 0) {
      // With probability kChoiceSpread, the choice is drawn uniformly from all choices.
      unit = luck < kChoiceSpread ? luck / kChoiceSpread : column.center[row];
    }
    point[d] = space.value_at(d, unit);
  }
  return point;
}

}  // namespace sinew::tune
