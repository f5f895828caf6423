// Warps an image by an affine map, with bilinear interpolation. Each row of the result reads the source along a
// straight line. The columns whose four neighbours all lie inside the source need no bounds checks.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "base/check.h"
#include "data/augment.h"

namespace sinew::data {
namespace {

// The source positions that one row of the result reads: for column c, x = x0 + dx * c and y = y0 + dy * c.
struct Line {
  float x0, dx, y0, dy;
  float x(int64_t column) const { return x0 + dx * static_cast<float>(column); }
  float y(int64_t column) const { return y0 + dy * static_cast<float>(column); }
};

// The columns [first, last) of a row whose source positions are inside the source image. They are contiguous, because
// the position is a linear function of the column.
struct ColumnRange {
  int64_t first, last;
};

// Keeps the columns where low <= start + slope * column < high, up to rounding.
void narrow(ColumnRange& columns, double start, double slope, double low, double high) {
  if (slope == 0) {
    if (start < low || start >= high) columns.last = columns.first;
    return;
  }
  double a = (low - start) / slope, b = (high - start) / slope;
  if (a > b) std::swap(a, b);
  const auto size = static_cast<double>(columns.last);
  columns.first = std::max(columns.first, static_cast<int64_t>(std::ceil(std::clamp(a, 0.0, size))));
  columns.last = std::min(columns.last, static_cast<int64_t>(std::floor(std::clamp(b, -1.0, size))) + 1);
}

// Returns the columns whose four neighbours lie inside the source. The exact check uses the same floats as the code
// that reads the pixels.
ColumnRange inner_columns(const Line& line, int64_t height, int64_t width) {
  ColumnRange columns{0, width};
  narrow(columns, line.x0, line.dx, 0, static_cast<double>(width - 1));
  narrow(columns, line.y0, line.dy, 0, static_cast<double>(height - 1));
  const auto inside = [&](int64_t column) {
    const float x = line.x(column), y = line.y(column);
    return x >= 0 && x < static_cast<float>(width - 1) && y >= 0 && y < static_cast<float>(height - 1);
  };
  while (columns.first < columns.last && !inside(columns.first)) ++columns.first;
  while (columns.first < columns.last && !inside(columns.last - 1)) --columns.last;
  if (columns.last < columns.first) columns.last = columns.first;
  return columns;
}

// Returns one pixel near or beyond the border. A missing neighbour counts as zero.
float border_pixel(const float* plane, int64_t height, int64_t width, float x, float y) {
  const float limit_x = static_cast<float>(width), limit_y = static_cast<float>(height);
  if (!(x > -1 && x < limit_x && y > -1 && y < limit_y)) return 0;
  const float floor_x = std::floor(x), floor_y = std::floor(y);
  const auto left = static_cast<int64_t>(floor_x), top = static_cast<int64_t>(floor_y);
  const float right_share = x - floor_x, bottom_share = y - floor_y;
  const auto at = [&](int64_t row, int64_t column) {
    return row >= 0 && row < height && column >= 0 && column < width ? plane[row * width + column] : 0.0f;
  };
  const float upper = at(top, left) * (1 - right_share) + at(top, left + 1) * right_share;
  const float lower = at(top + 1, left) * (1 - right_share) + at(top + 1, left + 1) * right_share;
  return upper * (1 - bottom_share) + lower * bottom_share;
}

// The source pixels that the inner columns of a row read, and their weights. All channels use the same plan.
struct RowPlan {
  std::vector<int32_t> offset;
  std::vector<float> right, bottom;
};

void plan_row(const Line& line, const ColumnRange& inner, int64_t width, RowPlan& plan) {
  for (int64_t column = inner.first; column < inner.last; ++column) {
    const float x = line.x(column), y = line.y(column);
    const auto left = static_cast<int32_t>(x),
               top = static_cast<int32_t>(y);  // truncation is the floor, because both are >= 0
    const auto i = static_cast<size_t>(column);
    plan.offset[i] = top * static_cast<int32_t>(width) + left;
    plan.right[i] = x - static_cast<float>(left);
    plan.bottom[i] = y - static_cast<float>(top);
  }
}

void warp_row(const float* plane, float* out, int64_t height, int64_t width, const Line& line, const ColumnRange& inner,
              const RowPlan& plan) {
  for (int64_t column = 0; column < inner.first; ++column) {
    out[column] = border_pixel(plane, height, width, line.x(column), line.y(column));
  }
  for (int64_t column = inner.first; column < inner.last; ++column) {
    const auto i = static_cast<size_t>(column);
    const float* upper = plane + plan.offset[i];
    const float* lower = upper + width;
    const float right = plan.right[i], bottom = plan.bottom[i];
    const float above = upper[0] + (upper[1] - upper[0]) * right;
    const float below = lower[0] + (lower[1] - lower[0]) * right;
    out[column] = above + (below - above) * bottom;
  }
  for (int64_t column = inner.last; column < width; ++column) {
    out[column] = border_pixel(plane, height, width, line.x(column), line.y(column));
  }
}

}  // namespace

void warp_affine(const AugmentDraw& draw, std::span<float> pixels, int64_t channels, int64_t height, int64_t width) {
  SINEW_CHECK(height * width < INT32_MAX, height, width);
  thread_local std::vector<float> source;
  thread_local RowPlan plan;
  source.assign(pixels.begin(), pixels.end());
  plan.offset.resize(static_cast<size_t>(width));
  plan.right.resize(static_cast<size_t>(width));
  plan.bottom.resize(static_cast<size_t>(width));

  const double radians = draw.angle * std::numbers::pi / 180;
  const double cosine = std::cos(radians) / draw.scale, sine = std::sin(radians) / draw.scale;
  const double center_x = 0.5 * static_cast<double>(width - 1), center_y = 0.5 * static_cast<double>(height - 1);
  for (int64_t y = 0; y < height; ++y) {
    const double from_x = -center_x - static_cast<double>(draw.translate_x);
    const double from_y = static_cast<double>(y) - center_y - static_cast<double>(draw.translate_y);
    const Line line{static_cast<float>(cosine * from_x + sine * from_y + center_x), static_cast<float>(cosine),
                    static_cast<float>(-sine * from_x + cosine * from_y + center_y), static_cast<float>(-sine)};
    const ColumnRange inner = inner_columns(line, height, width);
    plan_row(line, inner, width, plan);
    for (int64_t c = 0; c < channels; ++c) {
      warp_row(source.data() + c * height * width, pixels.data() + (c * height + y) * width, height, width, line, inner,
               plan);
    }
  }
}

}  // namespace sinew::data
