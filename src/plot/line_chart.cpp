// Draws curves: axes, grid, legend, the curves themselves and the best step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plot/font.h"
#include "plot/layout.h"

namespace sinew::plot {
namespace {

constexpr double kWide = 500;       // a logarithmic axis begins to show more than a linear one
constexpr size_t kMostMarked = 60;  // points of a curve that has a mark for each
constexpr double kTickGap = 6, kXAxisHeight = 46;

// The finite values of all curves. Empty if there are none.
std::vector<double> finite_values(const LineChart& chart, double Point::*of) {
  std::vector<double> values;
  for (const Curve& curve : chart.curves) {
    for (const Point& point : curve.points) {
      if (std::isfinite(point.x) && std::isfinite(point.y)) values.push_back(point.*of);
    }
  }
  return values;
}

Range range_of(const std::vector<double>& values) {
  if (values.empty()) return {0, 1};
  const auto [low, high] = std::ranges::minmax(values);
  return {low, high};
}

Scale x_scale_of(const LineChart& chart, int most_ticks) {
  if (chart.x_range) return linear_scale(*chart.x_range, most_ticks, false, chart.whole_x ? 1 : 0);
  Range range = range_of(finite_values(chart, &Point::x));
  if (chart.best) range = {std::min(range.low, *chart.best), std::max(range.high, *chart.best)};
  return linear_scale(range, most_ticks, false, chart.whole_x ? 1 : 0);
}

Scale y_scale_of(const LineChart& chart, int most_ticks) {
  if (chart.y_range) return linear_scale(*chart.y_range, most_ticks, true);
  const Range range = range_of(finite_values(chart, &Point::y));
  if (chart.logarithmic_if_wide && range.low > 0 && range.high / range.low >= kWide)
    return logarithmic_scale(range, most_ticks);
  Scale scale = linear_scale(range, most_ticks, true);
  if (!chart.y_limits) return scale;
  // An accuracy of 0.99 needs no axis that goes beyond 1.
  const Range limits{std::min(chart.y_limits->low, range.low), std::max(chart.y_limits->high, range.high)};
  scale.range = {std::max(scale.range.low, limits.low), std::min(scale.range.high, limits.high)};
  std::erase_if(scale.ticks, [&](const Tick& tick) {
    return tick.value < scale.range.low - 1e-12 || tick.value > scale.range.high + 1e-12;
  });
  return scale;
}

// The inner part of a chart, between the axes.
struct Area {
  Box box;
  Scale x, y;
  // A value beyond the range is at its edge.
  double at_x(double value) const { return box.x + std::clamp(x.place(value), 0.0, 1.0) * box.width; }
  double at_y(double value) const { return box.bottom() - std::clamp(y.place(value), 0.0, 1.0) * box.height; }
};

Area area_of(const LineChart& chart, const Box& box, double top) {
  Area area;
  area.box = {0, top + 8, 0, box.bottom() - kXAxisHeight - top - 8};
  area.y = y_scale_of(chart, static_cast<int>(std::clamp(area.box.height / 45, 3.0, 9.0)));
  double widest = 0;
  for (const Tick& tick : area.y.ticks) widest = std::max(widest, text_width(tick.text, kTickSize));
  area.box.x = std::floor(box.x + kEdge + 24 + widest + kTickGap);
  area.box.width = box.right() - kEdge - 8 - area.box.x;
  area.x = x_scale_of(chart, static_cast<int>(std::clamp(area.box.width / 80, 3.0, 9.0)));
  return area;
}

void put_axes(Picture& picture, const Box& box, const Area& area, const LineChart& chart) {
  const Box& inner = area.box;
  for (const Tick& tick : area.y.ticks) {
    const double y = sharp(area.at_y(tick.value));
    put_line(picture, {inner.x, y}, {inner.right(), y}, kPale);
    picture.shapes.emplace_back(Text{.at = {inner.x - kTickGap, y + 4},
                                     .text = tick.text,
                                     .size = kTickSize,
                                     .color = kGrey,
                                     .anchor = Anchor::end});
  }
  const double bottom = sharp(inner.bottom());
  for (const Tick& tick : area.x.ticks) {
    const double x = sharp(area.at_x(tick.value));
    put_line(picture, {x, bottom}, {x, bottom + 4}, kGrey);
    picture.shapes.emplace_back(
        Text{.at = {x, bottom + 17}, .text = tick.text, .size = kTickSize, .color = kGrey, .anchor = Anchor::middle});
  }
  put_line(picture, {inner.x, bottom}, {inner.right(), bottom}, kGrey);
  put_text(picture,
           {.at = {inner.x + inner.width / 2, box.bottom() - 10},
            .text = chart.x_label,
            .size = kLabelSize,
            .color = kGrey,
            .anchor = Anchor::middle},
           inner.width);
  const std::string y_label = chart.y_label + (area.y.logarithmic ? " (logarithmic)" : "");
  put_text(picture,
           {.at = {box.x + kEdge + 10, inner.y + inner.height / 2},
            .text = y_label,
            .size = kLabelSize,
            .color = kGrey,
            .anchor = Anchor::middle,
            .upward = true},
           inner.height);
}

bool is_drawable(const Area& area, const Point& point) {
  return std::isfinite(point.y) && (!area.y.logarithmic || point.y > 0);
}

void put_part(Picture& picture, const std::vector<Point>& part, const Curve& curve, bool marked) {
  const double width = curve.faint ? 1.2 : 2;
  if (part.size() > 1) picture.shapes.emplace_back(Polyline{part, curve.color, width});
  if (part.size() > 1 && !marked) return;
  for (const Point& point : part) picture.shapes.emplace_back(Disc{point, marked ? 3.2 : 2.4, curve.color});
}

// Thins the curve to its pixels, and draws the parts between values that are not finite. Small lines at the top show
// where those are.
void put_curve(Picture& picture, const Area& area, const Curve& curve) {
  Thinner pixels(1, std::numeric_limits<size_t>::max());
  size_t drawn = 0;
  for (const Point& point : curve.points) {
    if (!std::isfinite(point.x)) continue;
    const bool drawable = is_drawable(area, point);
    drawn += drawable ? 1 : 0;
    pixels.add({area.at_x(point.x), drawable ? area.at_y(point.y) : std::numeric_limits<double>::quiet_NaN()});
  }
  const bool marked = !curve.faint && drawn <= kMostMarked;
  std::vector<Point> part;
  for (const Point& point : pixels.points()) {
    if (!std::isnan(point.y)) {
      part.push_back(point);
      continue;
    }
    put_line(picture, {sharp(point.x), area.box.y}, {sharp(point.x), area.box.y + 8}, curve.color, 1.5);
    put_part(picture, part, curve, marked);
    part.clear();
  }
  put_part(picture, part, curve, marked);
}

std::vector<LegendEntry> legend_of(const LineChart& chart) {
  std::vector<LegendEntry> legend;
  int64_t not_finite = 0;
  for (const Curve& curve : chart.curves) {
    not_finite += curve.not_finite;
    if (!curve.in_legend) continue;
    const auto sign = curve.faint ? LegendEntry::Sign::line : LegendEntry::Sign::dotted_line;
    legend.push_back({sign, curve.color, curve.name + (curve.last.empty() ? "" : "  " + curve.last)});
  }
  if (chart.best) legend.push_back({LegendEntry::Sign::upright, kGrey, chart.best_text});
  if (not_finite > 0)
    legend.push_back({LegendEntry::Sign::upright, kBlack,
                      std::to_string(not_finite) + (not_finite == 1 ? " value is" : " values are") +
                          " NaN or infinite: marks at the top"});
  return legend;
}

}  // namespace

void put_chart(Picture& picture, const Box& box, const LineChart& chart) {
  const Area area = area_of(chart, box, put_head(picture, box, chart.title, legend_of(chart)));
  put_axes(picture, box, area, chart);
  if (chart.best) {
    const double x = sharp(area.at_x(*chart.best));
    put_line(picture, {x, area.box.y}, {x, area.box.bottom()}, kGrey, 1.5);
  }
  for (const Curve& curve : chart.curves) put_curve(picture, area, curve);
  if (!finite_values(chart, &Point::y).empty()) return;
  put_text(picture,
           {.at = {area.box.x + area.box.width / 2, area.box.y + area.box.height / 2},
            .text = chart.empty_text,
            .size = kLabelSize,
            .color = kGrey,
            .anchor = Anchor::middle},
           area.box.width);
}

}  // namespace sinew::plot
