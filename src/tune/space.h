// Defines search spaces: parameters, their conditions and constraints, and points. Part of tune/tune.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/comparison.h"

namespace sinew::tune {

// A point has one number for each parameter: the value of a real or an integer, or the index of a choice. An inactive
// parameter has NaN.
using Point = std::vector<double>;
inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

// Makes a parameter active only while its parent is active and has one of the `allowed` values (numbers as in a Point).
struct Condition {
  size_t parent = 0;
  std::vector<double> allowed;
};

struct Parameter {
  enum class Kind { real, integer, categorical, ordinal };
  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;          // both ends included; for choices: 0 and the last index
  bool log = false;                  // real and integer: search evenly in the logarithm
  double step = 0;                   // real: 0, or the distance between the allowed values; integer: at least 1
  std::vector<std::string> choices;  // categorical and ordinal: each is the JSON text of a scalar, such as "relu" or 64
  std::vector<Condition> conditions;  // the parameter is active while all of them hold

  bool numeric() const { return kind == Kind::real || kind == Kind::integer; }
  bool ordered() const { return kind != Kind::categorical; }
};

// A validated list of parameters and the constraints between them. Parents precede their children.
//
// A constraint compares parameters that have numeric values: numbers, or choices that are numbers. It applies to a
// point only if all parameters that it names are active at that point. A parameter with finitely many values divides
// the unit interval into grid steps, one for each value; functions call them cells. The grid steps have equal widths
// unless the parameter is logarithmic.
class Space {
 public:
  // Throws Error that names the invalid parameter, or the constraints that no point satisfies.
  explicit Space(std::vector<Parameter> parameters, std::vector<Comparison> constraints = {});
  size_t size() const { return parameters_.size(); }
  const Parameter& operator[](size_t i) const { return parameters_[i]; }
  bool conditional() const { return conditional_; }

  // The number of values of parameter i, or 0 if it is continuous.
  int64_t cells(size_t i) const { return cells_[i]; }
  // unit_at() maps a value to [0, 1], along the logarithm if the parameter is logarithmic. A value of a parameter with
  // grid steps maps into its grid step. value_at() maps back, to the nearest valid value. unit_at(value_at(u)) differs
  // from u by less than a grid step.
  double unit_at(size_t i, double value) const;
  double value_at(size_t i, double unit) const;
  // The value of grid step number `cell`. Step 0 has the lowest value.
  double value_of_cell(size_t i, double cell) const;
  // from_unit() and to_unit() map points from the unit cube to the space and back. Inactive parameters are NaN in both.
  // from_unit() turns every point of the cube into a point of the space: it drops the coordinates of parameters that
  // turn out to be inactive.
  Point from_unit(std::span<const double> unit) const;
  std::vector<double> to_unit(const Point& point) const;

  const std::vector<Comparison>& constraints() const { return constraints_; }
  bool allows(const Point& point) const { return !violated(point); }
  // Returns the first constraint that a point of the space violates, or null if it satisfies all.
  const Comparison* violated(const Point& point) const;
  // The index of the last parameter that a violated constraint names. A change of only later parameters cannot satisfy
  // it.
  size_t last_parameter_of(const Comparison& violated) const;
  // Some point that satisfies all constraints; empty if there are no constraints.
  const Point& allowed_point() const { return allowed_point_; }

  // Returns whether parameter i is active, given the parameters before it.
  bool active(size_t i, std::span<const double> point) const;
  // Turns any vector of the right size into a point of the space: moves every active value to the nearest valid one,
  // gives active parameters without a value the middle of their range, and drops the values of inactive parameters.
  void snap(Point& point) const;
  // Returns why this is not a point of the space or which constraint it violates, or nullopt if it is valid.
  std::optional<std::string> problem_of(const Point& point) const;

  // Returns the number of points that satisfy the constraints, or nullopt if the space is infinite or has more than
  // kMostCounted points in all.
  static constexpr int64_t kMostCounted = 1 << 20;
  std::optional<int64_t> count() const { return count_; }
  // first_point() and point_after() enumerate a space with a count() in a fixed order, including points that violate
  // constraints. point_after() returns nullopt if `point` is the last point.
  Point first_point() const;
  std::optional<Point> point_after(const Point& point) const;

 private:
  void check_parameter(size_t i) const;
  void count_points();
  void bind_constraints();
  void find_allowed_point();
  std::optional<bool> satisfies(size_t constraint, const Point& point) const;
  double number_of(size_t i, double value) const;
  std::vector<Parameter> parameters_;
  std::vector<Comparison> constraints_;
  std::vector<std::vector<size_t>> constrained_;     // for each constraint: the parameters that it names
  std::vector<std::vector<double>> choice_numbers_;  // for each constrained parameter: its choices as numbers
  Point allowed_point_;
  std::vector<int64_t> cells_;
  // The values at 0 and 1 of the unit interval; logarithms if the parameter is logarithmic.
  std::vector<double> from_, to_;
  std::optional<int64_t> count_;
  bool conditional_ = false;
};

bool same_point(const Point& a, const Point& b);
// Equal points have equal hashes; different points practically never do.
uint64_t hash_of(const Point& point);

// Read and write a space and a point as JSON (docs/formats/ask-tell.md). Reading throws Error that names the parameter.
Space read_space(std::string_view json, std::vector<Comparison> constraints = {});
Point read_point(const Space& space, std::string_view json);  // {"lr": 0.1, ...}: exactly the active parameters
std::string write_point(const Space& space, const Point& point);

}  // namespace sinew::tune
