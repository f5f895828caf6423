// Checks a space and its points, and maps the values of a parameter to the unit interval and back.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tune/rounding.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

constexpr double kMostCells = 0x1p53;

[[noreturn]] void refuse(const Parameter& parameter, const std::string& what, const std::string& hint) {
  throw Error("TUNE_BAD_PARAMETER", "parameter '" + parameter.name + "': " + what, hint);
}

void check_numbers(const Parameter& parameter) {
  if (!std::isfinite(parameter.low) || !std::isfinite(parameter.high)) {
    refuse(parameter, "low and high must be finite numbers", "for example low: 0, high: 1");
  }
  if (parameter.low > parameter.high) refuse(parameter, "low is above high", "exchange low and high");
  if (parameter.log && parameter.low <= 0) {
    refuse(parameter, "the low end of a logarithmic range must be above 0", "raise low, or leave log out");
  }
  const double width = parameter.high - parameter.low;
  if (!std::isfinite(width)) refuse(parameter, "the width of the range is no finite number", "use a narrower range");
  if (!(parameter.step >= 0) || !std::isfinite(parameter.step)) {
    refuse(parameter, "step must be a number above 0", "leave step out for a continuous range");
  }
  if (parameter.kind == Parameter::Kind::integer) {
    const auto whole = [](double x) { return std::nearbyint(x) == x && std::abs(x) <= kMostCells; };
    if (!whole(parameter.low) || !whole(parameter.high) || !whole(parameter.step)) {
      refuse(parameter, "low, high and step of an integer must be whole numbers below 2^53",
             "round them, or use a real number");
    }
  }
  if (parameter.log && parameter.step > (parameter.kind == Parameter::Kind::integer ? 1 : 0)) {
    refuse(parameter, "a parameter cannot have both step and log", "leave one of them out");
  }
  if (parameter.step > 0 && width / parameter.step >= kMostCells) {
    refuse(parameter, "step is too small for the range", "use a larger step, or none");
  }
}

void check_choices(const Parameter& parameter) {
  if (parameter.choices.empty()) refuse(parameter, "choices is empty", "list at least one choice");
  for (size_t i = 0; i < parameter.choices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (parameter.choices[i] == parameter.choices[j]) {
        refuse(parameter, "the choice " + parameter.choices[i] + " is listed twice", "list every choice once");
      }
    }
  }
}

}  // namespace

Space::Space(std::vector<Parameter> parameters, std::vector<Comparison> constraints)
    : parameters_(std::move(parameters)), constraints_(std::move(constraints)) {
  if (parameters_.empty())
    throw Error("TUNE_EMPTY_SPACE", "the search space is empty", "declare at least one parameter");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    if (!parameter.numeric()) {
      check_choices(parameter);
      parameter.low = 0;
      parameter.high = static_cast<double>(parameter.choices.size()) - 1;
      parameter.step = 1;
    } else if (parameter.kind == Parameter::Kind::integer && parameter.step == 0) {
      parameter.step = 1;
    }
    check_parameter(i);
    conditional_ |= !parameter.conditions.empty();
    const bool lattice = parameter.step > 0;
    const double half = lattice && parameter.log ? 0.5 : 0;
    from_.push_back(parameter.log ? std::log(parameter.low - half) : parameter.low);
    to_.push_back(parameter.log ? std::log(parameter.high + half) : parameter.high);
    const bool one = parameter.low == parameter.high;
    const double steps = lattice ? std::floor((parameter.high - parameter.low) / parameter.step + 1e-9) : 0;
    cells_.push_back(one ? 1 : lattice ? static_cast<int64_t>(steps) + 1 : 0);
    if (lattice && !parameter.log) to_.back() = parameter.low + steps * parameter.step;
  }
  bind_constraints();
  count_points();
  find_allowed_point();
}

void Space::check_parameter(size_t i) const {
  const Parameter& parameter = parameters_[i];
  if (parameter.name.empty())
    throw Error("TUNE_BAD_PARAMETER", "parameter " + std::to_string(i + 1) + " has no name",
                "give every parameter a name");
  for (size_t j = 0; j < i; ++j) {
    if (parameters_[j].name == parameter.name)
      refuse(parameter, "is declared twice", "give every parameter a name of its own");
  }
  if (parameter.numeric()) check_numbers(parameter);
  for (const Condition& condition : parameter.conditions) {
    if (condition.parent >= i) {
      refuse(parameter, "depends on a parameter that is not declared before it",
             "declare parents before their children");
    }
    const Parameter& parent = parameters_[condition.parent];
    if (parent.kind == Parameter::Kind::real) {
      refuse(parameter, "depends on '" + parent.name + "', which is a real number",
             "use a choice or an integer as the parent");
    }
    if (condition.allowed.empty())
      refuse(parameter, "its condition lists no value, so it could never be active", "list values of " + parent.name);
    for (const double value : condition.allowed) {
      if (!(value >= parent.low && value <= parent.high) ||
          value_at(condition.parent, unit_at(condition.parent, value)) != value) {
        refuse(parameter, "its condition lists a value that '" + parent.name + "' cannot have",
               "list values of " + parent.name);
      }
    }
  }
}

double Space::unit_at(size_t i, double value) const {
  const Parameter& parameter = parameters_[i];
  if (cells_[i] == 1) return 0.5;
  if (parameter.log) return std::clamp((std::log(value) - from_[i]) / (to_[i] - from_[i]), 0.0, 1.0);
  if (cells_[i] == 0) return std::clamp((value - from_[i]) / (to_[i] - from_[i]), 0.0, 1.0);
  return ((value - parameter.low) / parameter.step + 0.5) / static_cast<double>(cells_[i]);
}

double Space::value_at(size_t i, double unit) const {
  const Parameter& parameter = parameters_[i];
  unit = std::clamp(unit, 0.0, 1.0);
  if (cells_[i] == 1) return parameter.low;
  if (parameter.log || cells_[i] == 0) {
    double value = from_[i] + unit * (to_[i] - from_[i]);
    if (parameter.log) value = std::exp(value);
    if (cells_[i] > 0) value = std::nearbyint(value);
    return std::clamp(value, parameter.low, parameter.high);
  }
  return value_of_cell(i,
                       std::min(std::floor(unit * static_cast<double>(cells_[i])), static_cast<double>(cells_[i] - 1)));
}

double Space::value_of_cell(size_t i, double cell) const {
  const Parameter& parameter = parameters_[i];
  if (cell == 0) return parameter.low;
  const double value = parameter.low + cell * parameter.step;
  if (parameter.kind != Parameter::Kind::real) return value;
  return std::min(rounded(value, 15), parameter.high);  // gives 0.3 instead of 0.30000000000000004
}

bool Space::active(size_t i, std::span<const double> point) const {
  for (const Condition& condition : parameters_[i].conditions) {  // an inactive parent is NaN, which equals no value
    if (std::ranges::find(condition.allowed, point[condition.parent]) == condition.allowed.end()) return false;
  }
  return true;
}

Point Space::from_unit(std::span<const double> unit) const {
  Point point(size());
  for (size_t i = 0; i < size(); ++i) {
    point[i] = active(i, point) ? value_at(i, std::isnan(unit[i]) ? 0.5 : unit[i]) : kInactive;
  }
  return point;
}

std::vector<double> Space::to_unit(const Point& point) const {
  std::vector<double> unit(size());
  for (size_t i = 0; i < size(); ++i) unit[i] = std::isnan(point[i]) ? kInactive : unit_at(i, point[i]);
  return unit;
}

void Space::snap(Point& point) const {
  for (size_t i = 0; i < size(); ++i) {
    if (!active(i, point)) {
      point[i] = kInactive;
    } else if (std::isnan(point[i])) {
      point[i] = value_at(i, 0.5);
    } else {
      const double inside = std::clamp(point[i], parameters_[i].low, parameters_[i].high);
      point[i] = cells_[i] == 0 ? inside : value_at(i, unit_at(i, inside));
    }
  }
}

std::optional<std::string> Space::problem_of(const Point& point) const {
  if (point.size() != size()) return "it has another number of parameters";
  for (size_t i = 0; i < size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (!active(i, point)) {
      if (!std::isnan(point[i])) return "'" + parameter.name + "' is not active here";
    } else if (std::isnan(point[i])) {
      return "'" + parameter.name + "' has no value";
    } else if (!(point[i] >= parameter.low && point[i] <= parameter.high)) {
      return "'" + parameter.name + "' is outside its range";
    } else if (cells_[i] > 0 && value_at(i, unit_at(i, point[i])) != point[i]) {
      return "'" + parameter.name + "' is between two of its values";
    }
  }
  if (const Comparison* constraint = violated(point)) return "it violates '" + constraint->text() + "'";
  return std::nullopt;
}

}  // namespace sinew::tune
