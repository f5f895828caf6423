// Checks the constraints between the parameters of a space.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "tune/allowed.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

constexpr int kDraws = 200'000;  // an infinite space counts as empty if this many random points violate the constraints

// Returns the number that a choice represents, or nullopt if the choice is not a number. A choice is the JSON text of a
// scalar.
std::optional<double> number_in(std::string_view choice) {
  if (choice.size() > 2 && choice.front() == '"') choice = choice.substr(1, choice.size() - 2);
  if (choice.starts_with("+")) choice.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(choice.data(), choice.data() + choice.size(), number);
  if (error != std::errc() || end != choice.data() + choice.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_constraints(const std::vector<const Comparison*>& constraints, bool counted) {
  std::string all;
  bool equality = false;
  for (const Comparison* constraint : constraints) {
    all += (all.empty() ? "'" : " and '") + constraint->text() + "'";
    equality |= constraint->text().find("==") != std::string::npos;
  }
  throw Error("TUNE_CONSTRAINTS_TOO_TIGHT",
              (counted ? "no point of the search space satisfies " : "none of 200,000 random points satisfies ") + all,
              equality && !counted ? "leave all but one parameter of the equality out of the search"
                                   : "use wider ranges or other values, or fewer constraints");
}

}  // namespace

void Space::bind_constraints() {
  choice_numbers_.resize(size());
  for (const Comparison& constraint : constraints_) {
    std::vector<size_t>& named = constrained_.emplace_back();
    for (const std::string& name : constraint.names()) {
      const auto found = std::ranges::find(parameters_, name, &Parameter::name);
      const std::string where = "the constraint '" + constraint.text() + "' names '" + name + "', ";
      if (found == parameters_.end())
        throw Error("TUNE_BAD_CONSTRAINT", where + "which is no parameter of the search space",
                    "use a name that the search space declares");
      named.push_back(static_cast<size_t>(found - parameters_.begin()));
      if (found->numeric()) continue;
      std::vector<double>& numbers = choice_numbers_[named.back()];
      numbers.clear();
      for (const std::string& choice : found->choices) {
        const auto number = number_in(choice);
        if (!number)
          throw Error("TUNE_BAD_CONSTRAINT", where + "whose choice " + choice + " is no number",
                      "constrain numeric parameters; for other choices use the condition 'if'");
        numbers.push_back(*number);
      }
    }
  }
}

double Space::number_of(size_t i, double value) const {
  return parameters_[i].numeric() ? value : choice_numbers_[i][static_cast<size_t>(value)];
}

// Returns nullopt if the constraint does not apply to the point, because a parameter that it names is inactive there.
std::optional<bool> Space::satisfies(size_t constraint, const Point& point) const {
  std::vector<double> values;
  for (const size_t i : constrained_[constraint]) {
    if (std::isnan(point[i])) return std::nullopt;
    values.push_back(number_of(i, point[i]));
  }
  return constraints_[constraint].holds(values);
}

const Comparison* Space::violated(const Point& point) const {
  for (size_t k = 0; k < constraints_.size(); ++k) {
    if (!satisfies(k, point).value_or(true)) return &constraints_[k];
  }
  return nullptr;
}

size_t Space::last_parameter_of(const Comparison& violated) const {
  return std::ranges::max(constrained_[static_cast<size_t>(&violated - constraints_.data())]);
}

// Searches for a point that satisfies all constraints. For each constraint it also searches for such a point to which
// the constraint applies; otherwise a constraint could make a whole branch of the space infeasible without an error. In
// an infinite space it tries random points only. It does not try special points such as the middle of all ranges. An
// equality of real numbers may hold there and hardly anywhere else, and such a constraint must be refused.
void Space::find_allowed_point() {
  if (constraints_.empty()) return;
  // For each constraint: whether it applied to some point, whether some point satisfied it, and whether such a point
  // satisfied all other constraints as well.
  std::vector<bool> applied(constraints_.size()), satisfied(constraints_.size()),
      satisfied_with_all(constraints_.size());
  RandomStream random(derive(random_key({}), "allowed point"));
  std::optional<Point> point = count_ ? first_point() : random_point(*this, random);
  for (int draws = 1; point; ++draws) {
    const bool allowed = allows(*point);
    if (allowed && allowed_point_.empty()) allowed_point_ = *point;
    for (size_t k = 0; k < constraints_.size(); ++k) {
      const auto holds = satisfies(k, *point);
      applied[k] = applied[k] || holds;
      satisfied[k] = satisfied[k] || holds.value_or(false);
      satisfied_with_all[k] = satisfied_with_all[k] || (holds && allowed);
    }
    if (!allowed_point_.empty() && std::ranges::find(satisfied_with_all, false) == satisfied_with_all.end()) return;
    if (count_)
      point = point_after(*point);
    else if (draws < kDraws)
      point = random_point(*this, random);
    else
      point.reset();
  }
  std::vector<const Comparison*> alone, together;
  for (size_t k = 0; k < constraints_.size(); ++k) {
    if (applied[k] && !satisfied[k]) alone.push_back(&constraints_[k]);
    if (applied[k] && !satisfied_with_all[k]) together.push_back(&constraints_[k]);
  }
  if (!together.empty()) refuse_constraints(alone.empty() ? together : alone, count_.has_value());
}

}  // namespace sinew::tune
