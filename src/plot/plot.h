// Draws charts: curves over steps, ROC and precision-recall curves, and confusion matrices.
//
// A chart becomes a Picture, a list of shapes, which svg() writes as text and png() paints. So both formats show the
// same. report/ draws the charts of runs with it. All functions are pure; any thread may call them. The font is in the
// program (plot/font.h), so that no picture depends on the fonts of a machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sinew::plot {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Color&) const = default;
};
// Colours of curves that people with any kind of colour vision tell apart (Okabe and Ito 2008).
inline constexpr Color kBlue{0, 114, 178}, kVermilion{213, 94, 0}, kGreen{0, 158, 115}, kPurple{204, 121, 167},
    kOrange{230, 159, 0}, kSkyBlue{86, 180, 233};
inline constexpr Color kBlack{30, 34, 40}, kGrey{110, 116, 124}, kPale{226, 229, 233}, kWhite{255, 255, 255};

// ---- pictures ------------------------------------------------------------------------------------------------------

// Lengths are pixels; (0, 0) is the top left corner.
struct Rectangle {
  Point corner;  // top left
  double width = 0, height = 0;
  Color fill;
};
struct Polyline {
  std::vector<Point> points;
  Color color;
  double width = 1;
};
struct Disc {
  Point center;
  double radius = 1;
  Color color;
};
enum class Anchor { start, middle, end };
struct Text {
  Point at;  // on the baseline
  std::string text;
  double size = 12;
  Color color = kBlack;
  Anchor anchor = Anchor::start;
  bool bold = false;
  bool upward = false;    // true: turned by 90 degrees, from bottom to top
  std::string full = {};  // the whole text, if `text` is shortened
};
using Shape = std::variant<Rectangle, Polyline, Disc, Text>;

struct Picture {
  double width = 0, height = 0;
  std::string title;  // for programs that read pages to people
  std::vector<Shape> shapes;
};

// Returns one <svg> element, which is both a file of its own and a part of an HTML page.
std::string svg(const Picture& picture);
std::string png(const Picture& picture);  // throws Error if the picture is too large
// Returns the text with the characters escaped that have a meaning in XML and HTML. Replaces characters that XML does
// not allow by '?'.
std::string escaped(std::string_view text);

// ---- axes ----------------------------------------------------------------------------------------------------------

struct Range {
  double low = 0, high = 1;
};
struct Tick {
  double value = 0;
  std::string text;
};
struct Scale {
  Range range;
  bool logarithmic = false;
  std::vector<Tick> ticks;           // at round numbers, ascending
  double place(double value) const;  // 0 at range.low, 1 at range.high
};
// Returns a scale for finite values in `data`, which may be one value only. Ticks are at least `least_step` apart. With
// `round_ends`, the scale begins and ends at ticks.
Scale linear_scale(Range data, int most_ticks, bool round_ends, double least_step = 0);
Scale logarithmic_scale(Range data, int most_ticks);  // data.low > 0

// ---- thinning ------------------------------------------------------------------------------------------------------

// Takes any number of points and keeps so many that no pixel of a curve changes: the first, the lowest, the highest and
// the last point of each interval. When there are more than `most` intervals, it doubles their width.
class Thinner {
 public:
  explicit Thinner(double width = 1, size_t most = 2048) : width_(width), most_(most) {}
  void add(Point point);  // x is finite
  // Returns the points in the order of x. A point with y NaN separates two parts of the curve: values that are not
  // finite were there.
  std::vector<Point> points() const;
  int64_t not_finite() const { return not_finite_; }

 private:
  struct Interval {
    bool empty = true;  // true: no finite value
    bool gap = false;   // true: a value that is not finite
    double gap_at = 0;
    Point first, low, high, last;
  };
  static void merge(Interval& into, const Interval& from);
  double width_;
  size_t most_;
  int64_t not_finite_ = 0;
  std::map<int64_t, Interval> intervals_;
};

// ---- charts --------------------------------------------------------------------------------------------------------

struct Curve {
  std::string name;
  Color color;
  std::vector<Point> points;  // y may be NaN (see Thinner)
  int64_t not_finite = 0;     // values that are not drawn
  std::string last = {};      // the last value as text, for the legend
  bool faint = false;         // true: a thin line without a mark for each point
  bool in_legend = true;
};
struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  std::optional<double> best;  // x of a vertical line
  std::string best_text;
  std::string empty_text = "no values yet";  // shown if no curve has a point
  bool logarithmic_if_wide = false;          // a logarithmic y axis if the values are positive and very different
  bool whole_x = false;                      // true: x are whole numbers
  std::optional<Range> x_range, y_range;     // instead of those of the points
  std::optional<Range> y_limits;             // an axis that follows the points does not go beyond these
};
struct MatrixChart {
  std::string title;
  std::string row_label = "true class", column_label = "predicted class";
  std::vector<std::string> names;  // of the classes; may be shorter than `classes`
  int64_t classes = 0;
  std::vector<int64_t> counts;  // [classes * classes], one row for each true class
};
using Chart = std::variant<LineChart, MatrixChart>;

const std::string& title_of(const Chart& chart);
// Returns a picture of one chart.
Picture draw(const Chart& chart, double width = 800, double height = 500);
// Returns a picture of all charts in two columns, under a title.
Picture draw_all(const std::string& title, const std::vector<Chart>& charts);

}  // namespace sinew::plot
