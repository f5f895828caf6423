// Places charts in pictures.
#include "plot/layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plot/font.h"

namespace sinew::plot {
namespace {

constexpr double kSignWidth = 22, kRowHeight = 18, kBetweenEntries = 18;
constexpr double kPanelWidth = 640, kPanelHeight = 400, kHeadHeight = 44;
constexpr size_t kColumns = 2;

void put_sign(Picture& picture, const LegendEntry& entry, double x, double middle) {
  if (entry.sign == LegendEntry::Sign::upright)
    return put_line(picture, {sharp(x + kSignWidth / 2), middle - 7}, {sharp(x + kSignWidth / 2), middle + 7},
                    entry.color, 1.5);
  put_line(picture, {x + 1, middle}, {x + kSignWidth - 1, middle}, entry.color, 2);
  if (entry.sign == LegendEntry::Sign::dotted_line)
    picture.shapes.emplace_back(Disc{{x + kSignWidth / 2, middle}, 3.2, entry.color});
}

void put_any(Picture& picture, const Box& box, const Chart& chart) {
  std::visit([&](const auto& one) { put_chart(picture, box, one); }, chart);
}

}  // namespace

double sharp(double at) {
  return std::floor(at) + 0.5;
}

void put_line(Picture& picture, Point from, Point to, Color color, double width) {
  picture.shapes.emplace_back(Polyline{{from, to}, color, width});
}

void put_text(Picture& picture, Text text, double most) {
  std::string fitting = shortened(text.text, most, text.size, text.bold);
  if (fitting != text.text) text.full = std::exchange(text.text, std::move(fitting));
  picture.shapes.emplace_back(std::move(text));
}

double put_head(Picture& picture, const Box& box, const std::string& title, const std::vector<LegendEntry>& legend) {
  const double left = box.x + kEdge, most = box.width - 2 * kEdge;
  put_text(picture, {.at = {left, box.y + 25}, .text = title, .size = kTitleSize, .bold = true}, most);
  double x = left, y = box.y + 47;
  for (const LegendEntry& entry : legend) {
    const double width = std::min(most, kSignWidth + 6 + text_width(entry.text, kLabelSize));
    if (x > left && x + width > left + most) {
      x = left;
      y += kRowHeight;
    }
    put_sign(picture, entry, x, y - 4);
    put_text(picture, {.at = {x + kSignWidth + 6, y}, .text = entry.text, .size = kLabelSize}, most - kSignWidth - 6);
    x += width + kBetweenEntries;
  }
  return legend.empty() ? box.y + 34 : y + 6;
}

const std::string& title_of(const Chart& chart) {
  return std::visit([](const auto& one) -> const std::string& { return one.title; }, chart);
}

Picture draw(const Chart& chart, double width, double height) {
  Picture picture{width, height, title_of(chart), {Rectangle{{0, 0}, width, height, kWhite}}};
  put_any(picture, {0, 0, width, height}, chart);
  return picture;
}

Picture draw_all(const std::string& title, const std::vector<Chart>& charts) {
  const size_t columns = std::clamp<size_t>(charts.size(), 1, kColumns);
  const size_t rows = (charts.size() + columns - 1) / columns;
  const double width = columns == 1 ? 800 : kPanelWidth, height = columns == 1 ? 500 : kPanelHeight;
  const double all = width * static_cast<double>(columns);
  Picture picture{all, kHeadHeight + height * static_cast<double>(rows), title, {}};
  picture.shapes.emplace_back(Rectangle{{0, 0}, picture.width, picture.height, kWhite});
  put_text(picture, {.at = {kEdge, 29}, .text = title, .size = 17, .bold = true}, all - 2 * kEdge);
  for (size_t i = 0; i < charts.size(); ++i) {
    const size_t above = i / columns;
    const auto column = static_cast<double>(i % columns), row = static_cast<double>(above);
    put_any(picture, {column * width, kHeadHeight + row * height, width, height}, charts[i]);
  }
  return picture;
}

}  // namespace sinew::plot
