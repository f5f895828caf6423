// Tests of thinning, escaping, SVG and PNG.
#include "plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "plot/font.h"

namespace sinew::plot {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Pixels {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> bytes;
  Color at(int64_t x, int64_t y) const {
    const auto first = static_cast<size_t>(3 * (y * width + x));
    return {bytes.at(first), bytes.at(first + 1), bytes.at(first + 2)};
  }
  int64_t count(Color color) const {
    int64_t found = 0;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) found += at(x, y) == color ? 1 : 0;
    return found;
  }
};

Pixels painted(const Picture& picture) {
  const std::string file = png(picture);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, file.data(), file.size()), 0);
  image.format = PNG_FORMAT_RGB;
  Pixels pixels{static_cast<int64_t>(image.width), static_cast<int64_t>(image.height), {}};
  pixels.bytes.resize(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, pixels.bytes.data(), 0, nullptr), 0);
  return pixels;
}

Picture empty_picture(double width, double height) {
  return {width, height, "test", {Rectangle{{0, 0}, width, height, kWhite}}};
}

LineChart chart_of(std::vector<Point> points) {
  return {.title = "loss", .x_label = "step", .y_label = "loss", .curves = {{"train", kBlue, std::move(points)}}};
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// ---- thinning ------------------------------------------------------------------------------------------------------

TEST(Thin, AFewPointsStayAsTheyAre) {
  Thinner thinner;
  const std::vector<Point> points = {{1, 3}, {2, 1}, {3, 2}, {9, 5}};
  for (const Point& point : points) thinner.add(point);
  EXPECT_EQ(thinner.points(), points);
  EXPECT_EQ(thinner.not_finite(), 0);
}

TEST(Thin, AMillionPointsKeepEveryPeakAndStayFew) {
  Thinner thinner(1, 1000);
  for (int64_t i = 0; i < 1'000'000; ++i)
    thinner.add({static_cast<double>(i), i == 777'777   ? 50.0
                                         : i == 123'456 ? -50.0
                                                        : std::sin(static_cast<double>(i))});
  const std::vector<Point> points = thinner.points();
  EXPECT_LE(points.size(), 4000U);
  EXPECT_GE(points.size(), 1000U);
  EXPECT_THAT(points, testing::Contains(Point{777'777, 50}));
  EXPECT_THAT(points, testing::Contains(Point{123'456, -50}));
  EXPECT_EQ(points.front(), (Point{0, 0}));
  EXPECT_EQ(points.back().x, 999'999);
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &Point::x));
}

// The lowest and highest value of each pixel must be those of all points, also after intervals were merged.
TEST(Thin, EachIntervalHasItsExtremes) {
  Thinner thinner(1, 64);
  std::map<int64_t, Range> expected;  // by intervals of 16
  uint64_t noise = 1;
  for (int64_t i = 0; i < 1024; ++i) {
    noise = noise * 6364136223846793005U + 1442695040888963407U;
    const double y = static_cast<double>(noise >> 40);
    thinner.add({static_cast<double>(i), y});
    const auto [range, first] = expected.try_emplace(i / 16, Range{y, y});
    range->second = {std::min(range->second.low, y), std::max(range->second.high, y)};
  }
  std::map<int64_t, Range> found;
  for (const Point& point : thinner.points()) {
    const auto [range, first] = found.try_emplace(static_cast<int64_t>(point.x) / 16, Range{point.y, point.y});
    range->second = {std::min(range->second.low, point.y), std::max(range->second.high, point.y)};
  }
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [interval, range] : expected) {
    EXPECT_EQ(found[interval].low, range.low) << interval;
    EXPECT_EQ(found[interval].high, range.high) << interval;
  }
}

TEST(Thin, ValuesThatAreNotFiniteSeparateTheCurve) {
  Thinner thinner;
  for (const Point point : {Point{1, 1}, Point{2, kNan}, Point{3, 2}, Point{4, kInfinite}, Point{5, -kInfinite}})
    thinner.add(point);
  const std::vector<Point> points = thinner.points();
  EXPECT_EQ(thinner.not_finite(), 3);
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points[0], (Point{1, 1}));
  EXPECT_TRUE(std::isnan(points[1].y));
  EXPECT_EQ(points[1].x, 2);
  EXPECT_EQ(points[2], (Point{3, 2}));
  EXPECT_TRUE(std::isnan(points[4].y));
}

TEST(Thin, PointsMayComeInAnyOrder) {
  Thinner thinner;
  for (const double x : {5.0, 1.0, 3.0, 1e18, -1e18}) thinner.add({x, x});
  EXPECT_TRUE(std::ranges::is_sorted(thinner.points(), {}, &Point::x));
  EXPECT_EQ(thinner.points().size(), 5U);
}

// ---- text ----------------------------------------------------------------------------------------------------------

TEST(Escape, NoCharacterKeepsAMeaning) {
  EXPECT_EQ(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escaped("</svg><script>alert(1)</script>"), "&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
  EXPECT_EQ(escaped("Größe 学习 ﬁ"), "Größe 学习 ﬁ");
  EXPECT_EQ(escaped(std::string("a\0b\x1b[31m\xff", 9)), "a?b?[31m?");
  EXPECT_EQ(escaped("\xEF\xBF\xBE|\xEF\xBF\xBF|\xEF\xBF\xBD"), "?|?|\xEF\xBF\xBD");
}

TEST(Font, LongTextsKeepTheirBeginningAndEnd) {
  const std::string name = "val/" + std::string(500, 'x') + "/the_end";
  const std::string cut = shortened(name, 200, 12);
  EXPECT_LE(text_width(cut, 12), 200);
  EXPECT_GT(text_width(cut, 12), 170);
  EXPECT_TRUE(cut.starts_with("val/")) << cut;
  EXPECT_TRUE(cut.ends_with("end")) << cut;
  EXPECT_EQ(shortened("val/loss", 200, 12), "val/loss");
  EXPECT_EQ(shortened("val/loss", 0, 12), "…");
  EXPECT_LE(shortened(std::string(1'000'000, '.'), 300, 12).size(), 400U);
  EXPECT_GT(text_width("W", 12), text_width("i", 12));
  EXPECT_NEAR(text_width("abc", 24), 2 * text_width("abc", 12), 0.1);
}

TEST(Font, LettersArePainted) {
  Picture picture = empty_picture(200, 60);
  picture.shapes.emplace_back(Text{.at = {10, 40}, .text = "loss", .size = 30});
  const Pixels pixels = painted(picture);
  const int64_t black = pixels.count(kBlack);
  EXPECT_GT(black, 100);
  picture.shapes.emplace_back(Text{.at = {180, 55}, .text = "loss", .size = 30, .upward = true});
  EXPECT_GT(painted(picture).count(kBlack), black + 10);
  EXPECT_EQ(pixels.at(5, 5), kWhite);
}

// ---- pictures ------------------------------------------------------------------------------------------------------

TEST(Png, ShapesAreWhereTheyShouldBe) {
  Picture picture = empty_picture(80, 50);
  picture.shapes.emplace_back(Rectangle{{10, 10}, 5, 5, kBlue});
  picture.shapes.emplace_back(Polyline{{{20.5, 5.5}, {20.5, 45.5}}, kVermilion, 1});
  picture.shapes.emplace_back(Disc{{60, 25}, 6, kGreen});
  picture.shapes.emplace_back(Polyline{{{-1000, 40}, {1000, 40}}, kPurple, 2});
  const Pixels pixels = painted(picture);
  ASSERT_EQ(pixels.width, 80);
  ASSERT_EQ(pixels.height, 50);
  EXPECT_EQ(pixels.count(kBlue), 25);
  EXPECT_EQ(pixels.at(12, 12), kBlue);
  EXPECT_EQ(pixels.at(20, 20), kVermilion);
  EXPECT_EQ(pixels.at(19, 20), kWhite);
  EXPECT_EQ(pixels.at(60, 25), kGreen);
  EXPECT_EQ(pixels.at(60, 15), kWhite);
  EXPECT_NEAR(static_cast<double>(pixels.count(kGreen)), 3.14159 * 36, 30);
  EXPECT_EQ(pixels.count(kPurple), 160);
}

TEST(Png, ADiagonalHasTheWidthOfOthers) {
  Picture picture = empty_picture(100, 100);
  picture.shapes.emplace_back(Polyline{{{10, 10}, {90, 90}}, kBlack, 3});
  const Pixels pixels = painted(picture);
  double ink = 0;
  for (int64_t y = 0; y < 100; ++y)
    for (int64_t x = 0; x < 100; ++x) ink += (255.0 - pixels.at(x, y).red) / (255.0 - kBlack.red);
  EXPECT_NEAR(ink, 3 * 80 * std::sqrt(2) + 3.14159 * 1.5 * 1.5, 12);
}

TEST(Png, APictureWithoutPixelsIsRefused) {
  EXPECT_THROW(png({0, 10, "", {}}), Error);
  EXPECT_THROW(png({1e9, 1e9, "", {}}), Error);
}

TEST(Svg, NumbersAndNamesAreWritten) {
  Picture picture{20, 10, "a<b", {}};
  picture.shapes.emplace_back(Polyline{{{0.5, -0.25}, {10, 2.004}}, kBlue, 1.5});
  picture.shapes.emplace_back(Text{.at = {1, 2}, .text = "x & y", .size = 12, .full = "x & y & z"});
  const std::string text = svg(picture);
  EXPECT_THAT(text, testing::HasSubstr("viewBox=\"0 0 20 10\""));
  EXPECT_THAT(text, testing::HasSubstr("aria-label=\"a&lt;b\""));
  EXPECT_THAT(text, testing::HasSubstr("stroke=\"#0072b2\""));
  EXPECT_THAT(text, testing::HasSubstr("points=\"0.5,-0.25 10,2\""));
  EXPECT_THAT(text, testing::HasSubstr(">x &amp; y<title>x &amp; y &amp; z</title></text>"));
}

// ---- charts --------------------------------------------------------------------------------------------------------

TEST(Chart, ACurveIsDrawnBetweenItsAxes) {
  LineChart chart = chart_of({{0, 2.5}, {50, 1.2}, {100, 0.4}});
  chart.curves[0].last = "0.4";
  chart.best = 100;
  chart.best_text = "best 0.4 at step 100";
  const Picture picture = draw(chart);
  EXPECT_EQ(picture.width, 800);
  EXPECT_EQ(picture.height, 500);
  const std::string text = svg(picture);
  for (const char* expected : {">loss<", ">step<", ">train  0.4<", ">best 0.4 at step 100<", ">2.5<", ">100<"})
    EXPECT_THAT(text, testing::HasSubstr(expected));
  const Pixels pixels = painted(picture);
  EXPECT_EQ(pixels.width, 800);
  EXPECT_GT(pixels.count(kBlue), 500);
}

// For all values, the chart shows nothing outside the picture and no number that is not finite.
TEST(Chart, AnyValuesGiveAPicture) {
  const double huge = std::numeric_limits<double>::max(), tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<Point>> curves = {
      {},
      {{7, 0.5}},
      {{0, 0}},
      {{0, kNan}, {1, kInfinite}},
      {{0, 1}, {1, kNan}, {2, 1}},
      {{0, huge}, {1, -huge}},
      {{0, tiny}, {1, 2 * tiny}},
      {{0, 1e9}, {1, 1e9 + 1e-6}},
      {{0, 5}, {1, 5}, {2, 5}},
      {{9e15, 1}, {9e15 + 2, 2}},
      {{0, 1e-12}, {1, 1e6}},
  };
  for (size_t i = 0; i < curves.size(); ++i) {
    LineChart chart = chart_of(curves[i]);
    chart.logarithmic_if_wide = true;
    const Picture picture = draw(chart);
    const std::string text = svg(picture);
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("nan\""))) << i;
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("inf"))) << i;
    for (const Shape& shape : picture.shapes) {
      const auto* line = std::get_if<Polyline>(&shape);
      if (line == nullptr) continue;
      for (const Point& point : line->points) {
        EXPECT_TRUE(point.x >= 0 && point.x <= 800 && point.y >= 0 && point.y <= 500) << i;
      }
    }
    painted(picture);
    const bool empty = std::ranges::none_of(curves[i], [](const Point& point) { return std::isfinite(point.y); });
    EXPECT_EQ(text.find("no values yet") != std::string::npos, empty) << i;
  }
}

TEST(Chart, AMillionPointsAreASmallPicture) {
  std::vector<Point> points;
  for (int64_t i = 0; i < 1'000'000; ++i)
    points.push_back({static_cast<double>(i), i == 500'000 ? 9.0 : std::cos(static_cast<double>(i) * 0.7)});
  const Picture picture = draw(chart_of(std::move(points)));
  EXPECT_LT(svg(picture).size(), 100'000U);
  bool peak = false;  // the one value of 9 stands alone near the middle
  for (const Shape& shape : picture.shapes) {
    if (const auto* line = std::get_if<Polyline>(&shape); line != nullptr && line->color == kBlue)
      for (const Point& point : line->points) peak = peak || (point.y < 130 && std::abs(point.x - 430) < 40);
  }
  EXPECT_TRUE(peak);
}

TEST(Chart, LongAndHostileNamesStayInside) {
  LineChart chart = chart_of({{0, 1}, {1, 2}});
  chart.title = std::string(3000, 'W') + "</svg><script>";
  chart.y_label = chart.title;
  chart.curves[0].name = chart.title;
  const Picture picture = draw(chart);
  for (const Shape& shape : picture.shapes) {
    const auto* text = std::get_if<Text>(&shape);
    if (text != nullptr) {
      EXPECT_LE(text_width(text->text, text->size, text->bold), 800);
    }
  }
  EXPECT_EQ(occurrences(svg(picture), "</svg>"), 1U);
  EXPECT_EQ(occurrences(svg(picture), "<script"), 0U);
}

TEST(Chart, AConfusionMatrixShowsItsCounts) {
  const MatrixChart chart{.title = "confusion", .names = {"cat", "dog"}, .classes = 2, .counts = {1234, 1, 0, 77}};
  const std::string text = svg(draw(chart));
  for (const char* expected : {">1234<", ">1<", ">77<", ">cat<", ">dog<", ">true class<"})
    EXPECT_THAT(text, testing::HasSubstr(expected));
  EXPECT_EQ(text.find(">0<"), std::string::npos);  // an empty cell has no number
}

TEST(Chart, ManyClassesShareCells) {
  MatrixChart chart{.title = "confusion", .names = {}, .classes = 200, .counts = std::vector<int64_t>(40'000, 1)};
  const Picture picture = draw(chart);
  const std::string text = svg(picture);
  EXPECT_THAT(text, testing::HasSubstr("each cell: 4 classes"));
  EXPECT_LT(picture.shapes.size(), 3000U);
  painted(picture);
  chart.classes = 64;
  chart.counts.assign(64 * 64, 5);
  EXPECT_EQ(svg(draw(chart)).find("each cell"), std::string::npos);
}

TEST(Chart, SeveralChartsHaveTwoColumns) {
  const std::vector<Chart> charts(3, chart_of({{0, 1}, {1, 2}}));
  const Picture picture = draw_all("run", charts);
  EXPECT_EQ(picture.width, 1280);
  EXPECT_EQ(picture.height, 44 + 2 * 400);
  EXPECT_EQ(occurrences(svg(picture), ">loss<"), 6U);  // a title and a label of each
  EXPECT_EQ(draw_all("run", {charts[0]}).width, 800);
  EXPECT_EQ(draw_all("run", {}).height, 44);
}

}  // namespace
}  // namespace sinew::plot
