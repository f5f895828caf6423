// Draws confusion matrices.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "plot/font.h"
#include "plot/layout.h"

namespace sinew::plot {
namespace {

constexpr int64_t kMostCells = 64;  // in a row; with more classes, a cell is several classes
constexpr double kMostNameWidth = 110, kWideCell = 64, kBarWidth = 14, kBarRoom = 78;

// The colour of a share from 0 to 1: white, then ever darker blue.
Color shade(double share) {
  constexpr std::array<Color, 3> kStops = {{{255, 255, 255}, {107, 174, 214}, {8, 48, 107}}};
  const double at = std::clamp(share, 0.0, 1.0) * 2;
  const auto stop = std::min<size_t>(1, static_cast<size_t>(at));
  const auto mix = [&](uint8_t from, uint8_t to) {
    return static_cast<uint8_t>(std::lround(from + (to - from) * (at - static_cast<double>(stop))));
  };
  const Color from = kStops.at(stop), to = kStops.at(stop + 1);
  return {mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
}

std::string short_count(int64_t count) {
  if (count < 10'000) return std::to_string(count);
  if (count < 1'000'000) return std::to_string(count / 1000) + "k";
  return std::to_string(count / 1'000'000) + "M";
}

// The matrix as it is drawn: with many classes, each cell has the sum of several.
struct Cells {
  int64_t side = 0, classes_each = 1;
  std::vector<int64_t> counts, rows;  // `rows` has the sums of the rows
  std::vector<std::string> names;
};

Cells cells_of(const MatrixChart& chart) {
  SINEW_CHECK(static_cast<int64_t>(chart.counts.size()) == chart.classes * chart.classes, "confusion matrix");
  Cells cells;
  cells.classes_each = std::max<int64_t>(1, (chart.classes + kMostCells - 1) / kMostCells);
  cells.side = (chart.classes + cells.classes_each - 1) / cells.classes_each;
  cells.counts.assign(static_cast<size_t>(cells.side * cells.side), 0);
  cells.rows.assign(static_cast<size_t>(cells.side), 0);
  for (int64_t truth = 0; truth < chart.classes; ++truth) {
    for (int64_t guess = 0; guess < chart.classes; ++guess) {
      const int64_t count = chart.counts[static_cast<size_t>(truth * chart.classes + guess)];
      const int64_t row = truth / cells.classes_each, column = guess / cells.classes_each;
      cells.counts[static_cast<size_t>(row * cells.side + column)] += count;
      cells.rows[static_cast<size_t>(row)] += count;
    }
  }
  for (int64_t i = 0; i < cells.side; ++i) {
    const auto first = static_cast<size_t>(i * cells.classes_each);
    cells.names.push_back(first < chart.names.size() ? chart.names[first] : std::to_string(first));
  }
  return cells;
}

struct Grid {
  double x = 0, y = 0, cell = 0, names = 0;
  bool upward = false;  // true: the names of the columns are turned
};

Grid grid_of(const Cells& cells, const Box& box, double top) {
  Grid grid;
  for (const std::string& name : cells.names)
    grid.names = std::max(grid.names, std::min(kMostNameWidth, text_width(name, kTickSize)));
  const auto side = static_cast<double>(cells.side);
  const double width = box.width - 2 * kEdge - 18 - grid.names - 8 - kBarRoom;
  const double height = box.bottom() - top - 12 - 22;
  // Names that are wider than a small cell are turned, and need more room below. A wide cell has a shortened name.
  const double room = std::min(width, height - 18) / side - 4;
  grid.upward = grid.names > room && room < kWideCell;
  const double below = grid.upward ? grid.names + 8 : 18;
  grid.cell = std::max(2.0, std::floor(std::min(width, height - below) / side));
  grid.x = std::floor(box.x + kEdge + 18 + grid.names + 8 + std::max(0.0, (width - grid.cell * side) / 2));
  grid.y = std::floor(top + 6);
  return grid;
}

void put_cells(Picture& picture, const Cells& cells, const Grid& grid) {
  for (int64_t row = 0; row < cells.side; ++row) {
    for (int64_t column = 0; column < cells.side; ++column) {
      const int64_t count = cells.counts[static_cast<size_t>(row * cells.side + column)];
      if (count <= 0) continue;
      const int64_t all = cells.rows[static_cast<size_t>(row)];
      const double share = static_cast<double>(count) / static_cast<double>(all);
      const double x = grid.x + static_cast<double>(column) * grid.cell;
      const double y = grid.y + static_cast<double>(row) * grid.cell;
      // A count above 0 is never white.
      picture.shapes.emplace_back(Rectangle{{x, y}, grid.cell, grid.cell, shade(std::max(0.04, share))});
      const std::string text = short_count(count);
      if (text_width(text, kTickSize) > grid.cell - 4 || grid.cell < kTickSize + 4) continue;
      picture.shapes.emplace_back(Text{.at = {x + grid.cell / 2, y + grid.cell / 2 + 4},
                                       .text = text,
                                       .size = kTickSize,
                                       .color = share > 0.5 ? kWhite : kBlack,
                                       .anchor = Anchor::middle});
    }
  }
}

void put_names(Picture& picture, const Cells& cells, const Grid& grid) {
  const auto every = static_cast<int64_t>(std::ceil((kTickSize + 3) / grid.cell));
  const double bottom = grid.y + static_cast<double>(cells.side) * grid.cell;
  for (int64_t i = 0; i < cells.side; i += every) {
    const double middle = (static_cast<double>(i) + 0.5) * grid.cell;
    const std::string& name = cells.names[static_cast<size_t>(i)];
    put_text(picture, {.at = {grid.x - 6, grid.y + middle + 4}, .text = name, .size = kTickSize, .anchor = Anchor::end},
             kMostNameWidth);
    Text below{.at = {grid.x + middle, bottom + 15}, .text = name, .size = kTickSize, .anchor = Anchor::middle};
    if (grid.upward) {
      below.at = {grid.x + middle + 4, bottom + 6};
      below.anchor = Anchor::end;
      below.upward = true;
    }
    put_text(picture, std::move(below), grid.upward ? kMostNameWidth : grid.cell * static_cast<double>(every) - 4);
  }
}

// Shows which share of the samples of a class a colour means.
void put_bar(Picture& picture, const Grid& grid, double right, double height) {
  constexpr int kSteps = 40;
  const double x = right - kBarRoom + 18, step = height / kSteps;
  for (int i = 0; i < kSteps; ++i)
    picture.shapes.emplace_back(
        Rectangle{{x, grid.y + i * step}, kBarWidth, step + 0.5, shade(1 - i / static_cast<double>(kSteps - 1))});
  for (int i = 0; i <= 4; ++i)
    picture.shapes.emplace_back(Text{.at = {x + kBarWidth + 6, grid.y + height * i / 4 + 4},
                                     .text = std::to_string(100 - 25 * i) + " %",
                                     .size = kTickSize,
                                     .color = kGrey});
}

}  // namespace

void put_chart(Picture& picture, const Box& box, const MatrixChart& chart) {
  const Cells cells = cells_of(chart);
  const std::string grouped =
      cells.classes_each > 1 ? " (each cell: " + std::to_string(cells.classes_each) + " classes)" : "";
  const double top = put_head(picture, box, chart.title + grouped, {});
  const Grid grid = grid_of(cells, box, top);
  const double side = static_cast<double>(cells.side) * grid.cell;
  put_cells(picture, cells, grid);
  for (const double at : {0.0, side}) {
    put_line(picture, {sharp(grid.x), sharp(grid.y + at)}, {sharp(grid.x + side), sharp(grid.y + at)}, kGrey);
    put_line(picture, {sharp(grid.x + at), sharp(grid.y)}, {sharp(grid.x + at), sharp(grid.y + side)}, kGrey);
  }
  put_names(picture, cells, grid);
  put_bar(picture, grid, std::min(box.right(), grid.x + side + kBarRoom + 16), side);
  Text label{.at = {grid.x + side / 2, box.bottom() - 10},
             .text = chart.column_label + "; colour: share of the true class",
             .size = kLabelSize,
             .color = kGrey,
             .anchor = Anchor::middle};
  put_text(picture, label, std::max(side, box.width / 2));
  label.at = {grid.x - grid.names - 16, grid.y + side / 2};
  label.text = chart.row_label;
  label.upward = true;
  put_text(picture, label, std::max(side, 80.0));
}

}  // namespace sinew::plot
