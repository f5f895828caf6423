#include "onnx/date.h"

#include <cmath>

namespace sinew::onnx {
namespace {

constexpr double kDaySeconds = 86400;

// The points of a circle that stand for months, weekdays and hours (encode_date in data/encoding_parts.cpp).
std::vector<float> circle(int64_t parts) {
  std::vector<float> points;
  for (int64_t i = 0; i < parts; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / static_cast<double>(parts);
    points.push_back(static_cast<float>(std::sin(angle)));
    points.push_back(static_cast<float>(std::cos(angle)));
  }
  return points;
}

// Adds arithmetic on values [batch].
class Arithmetic {
 public:
  explicit Arithmetic(Builder& builder) : builder_(builder) {}
  std::string op(const char* name, const std::string& a, const std::string& b) { return builder_.add(name, {a, b}); }
  std::string op(const char* name, const std::string& a, int64_t b) {
    return op(name, a, builder_.constant(integers({}, {b})));
  }
  std::string op(const char* name, const std::string& a, double b) {
    return op(name, a, builder_.constant(doubles({}, {b})));
  }
  std::string whole(const std::string& value) { return builder_.cast(builder_.add("Floor", {value}), Element::i64); }
  std::string scaled(const std::string& value, double center, double std) {  // float32 [batch, 1]
    return as_column(builder_, builder_.cast(op("Div", op("Sub", value, center), std), Element::f32));
  }
  std::string point(const std::string& index, int64_t parts) {  // float32 [batch, 2]
    return builder_.add("Gather", {builder_.constant(floats({parts, 2}, circle(parts))), index},
                        {{"axis", int64_t{0}}});
  }

 private:
  Builder& builder_;
};

}  // namespace

std::string as_column(Builder& builder, const std::string& value) {
  return builder.add("Unsqueeze", {value, builder.constant(integers({1}, {1}))});
}

// The algorithm is civil_from_days of Howard Hinnant, "chrono-compatible low-level date algorithms". It counts days
// since 0000-03-01. All its numbers are positive, so a division of whole numbers rounds down.
std::string date_inputs(Builder& builder, const data::PreparedColumn& column, const std::string& seconds) {
  Arithmetic with(builder);
  const auto op = [&](const char* name, const std::string& a, const auto& b) { return with.op(name, a, b); };
  const std::string days = op("Div", seconds, kDaySeconds), whole_days = with.whole(days);
  const std::string z = op("Add", whole_days, int64_t{719468});
  const std::string era = op("Div", z, int64_t{146097});
  const std::string day_of_era = op("Sub", z, op("Mul", era, int64_t{146097}));
  const auto part = [&](const std::string& value, int64_t by) { return op("Div", value, by); };
  const std::string without_leap_days =
      op("Sub", op("Add", op("Sub", day_of_era, part(day_of_era, 1460)), part(day_of_era, 36524)),
         part(day_of_era, 146096));
  const std::string year_of_era = part(without_leap_days, 365);
  const std::string days_before =
      op("Sub", op("Add", op("Mul", year_of_era, int64_t{365}), part(year_of_era, 4)), part(year_of_era, 100));
  const std::string day_of_year = op("Sub", day_of_era, days_before);
  const std::string march_month = part(op("Add", op("Mul", day_of_year, int64_t{5}), int64_t{2}), 153);
  // January and February belong to the next year, which begins ten months after March.
  const std::string next_year = part(march_month, 10);
  const std::string year = op("Add", op("Add", year_of_era, op("Mul", era, int64_t{400})), next_year);
  const std::string month = op("Sub", op("Add", march_month, int64_t{2}), op("Mul", next_year, int64_t{12}));
  const std::string weekday = op("Mod", op("Add", z, int64_t{3}), int64_t{7});
  std::vector<std::string> all = {with.scaled(builder.cast(year, Element::f64), column.year_center, column.year_std),
                                  with.scaled(days, column.center, column.std), with.point(month, 12),
                                  with.point(weekday, 7)};
  if (column.hours) {
    const std::string rest = op("Sub", seconds, op("Mul", builder.cast(whole_days, Element::f64), kDaySeconds));
    all.push_back(with.point(with.whole(op("Div", rest, 3600.0)), 24));
  }
  return builder.add("Concat", all, {{"axis", int64_t{1}}});
}

}  // namespace sinew::onnx
