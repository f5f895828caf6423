// What the charts share: the place of a chart in a picture, its title and its legend. Private to plot/.
#pragma once

#include <string>
#include <vector>

#include "plot/plot.h"

namespace sinew::plot {

constexpr double kTitleSize = 15, kLabelSize = 12, kTickSize = 11;
constexpr double kEdge = 16;  // between the edge of a chart and what is in it

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

// A horizontal or vertical line of one pixel is sharp in the middle of a pixel.
double sharp(double at);
void put_line(Picture& picture, Point from, Point to, Color color, double width = 1);
// Shortens the text to `most` pixels.
void put_text(Picture& picture, Text text, double most);

struct LegendEntry {
  enum class Sign { line, dotted_line, upright } sign = Sign::line;
  Color color;
  std::string text;
};
// Writes the title and below it the legend, in as many rows as it needs. Returns the y of its end.
double put_head(Picture& picture, const Box& box, const std::string& title, const std::vector<LegendEntry>& legend);

void put_chart(Picture& picture, const Box& box, const LineChart& chart);
void put_chart(Picture& picture, const Box& box, const MatrixChart& chart);

}  // namespace sinew::plot
