// Draws a range test of the learning rate.
#include <algorithm>
#include <cmath>

#include "base/short_number.h"
#include "report/curves.h"

namespace sinew::report {

std::string rate_picture(const std::string& job, const std::vector<RateLoss>& losses, double suggestion, bool vector) {
  plot::LineChart chart{.title = job + ": range test of the learning rate",
                        .x_label = "learning rate (power of ten)",
                        .y_label = "training loss"};
  chart.curves = {{.name = "loss of a step", .color = plot::kSkyBlue, .faint = true},
                  {.name = "smoothed", .color = plot::kBlue}};
  plot::Range smoothed{.low = INFINITY, .high = -INFINITY};
  for (const RateLoss& one : losses) {
    smoothed = {std::min(smoothed.low, one.smoothed), std::max(smoothed.high, one.smoothed)};
    chart.curves[0].points.push_back({std::log10(one.lr), one.loss});
    chart.curves[1].points.push_back({std::log10(one.lr), one.smoothed});
  }
  chart.best = std::log10(suggestion);
  chart.best_text = "suggestion: " + short_number(suggestion);
  const double around = 0.3 * (smoothed.high - smoothed.low);  // the last losses may be anything
  chart.y_limits = {smoothed.low - around, smoothed.high + around};
  return picture_text(plot::draw(chart), vector);
}

}  // namespace sinew::report
