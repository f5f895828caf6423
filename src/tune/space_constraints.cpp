// What must hold between the parameters of a point.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "tune/allowed.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

constexpr int kDraws = 200'000;  // in search of a point that they allow

// Of a choice, which is the JSON text of a scalar; none: it is no number.
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
  throw Error((counted ? "no point of the search meets " : "none of 200,000 points drawn at random meets ") + all,
              equality && !counted ? "for an equality, vary one of its parameters only"
                                   : "wider ranges or other values, or fewer constraints");
}

}  // namespace

void Space::bind_constraints() {
  choice_numbers_.resize(size());
  for (const Comparison& constraint : constraints_) {
    std::vector<size_t>& named = constrained_.emplace_back();
    for (const std::string& name : constraint.names()) {
      const auto found = std::ranges::find(parameters_, name, &Parameter::name);
      const std::string where = "the constraint '" + constraint.text() + "' names '" + name + "', ";
      if (found == parameters_.end()) throw Error(where + "which is no parameter of the space", "one of its names");
      named.push_back(static_cast<size_t>(found - parameters_.begin()));
      if (found->numeric()) continue;
      std::vector<double>& numbers = choice_numbers_[named.back()];
      numbers.clear();
      for (const std::string& choice : found->choices) {
        const auto number = number_in(choice);
        if (!number)
          throw Error(where + "whose choice " + choice + " is no number", "a condition, for what is no number");
        numbers.push_back(*number);
      }
    }
  }
}

double Space::number_of(size_t i, double value) const {
  return parameters_[i].numeric() ? value : choice_numbers_[i][static_cast<size_t>(value)];
}

// None: it does not concern the point, for something that it names is not there.
std::optional<bool> Space::meets(size_t constraint, const Point& point) const {
  std::vector<double> values;
  for (const size_t i : constrained_[constraint]) {
    if (std::isnan(point[i])) return std::nullopt;
    values.push_back(number_of(i, point[i]));
  }
  return constraints_[constraint].holds(values);
}

const Comparison* Space::violated(const Point& point) const {
  for (size_t k = 0; k < constraints_.size(); ++k) {
    if (!meets(k, point).value_or(true)) return &constraints_[k];
  }
  return nullptr;
}

size_t Space::last_named(const Comparison& violated) const {
  return std::ranges::max(constrained_[static_cast<size_t>(&violated - constraints_.data())]);
}

// One that they allow; and of each constraint one among those whose parameters are all there, or a branch of the space
// would be shut without a word. Of a continuum by chance alone: an equality of numbers may hold in its middle and
// hardly anywhere else.
void Space::find_allowed_point() {
  if (constraints_.empty()) return;
  // Of each: whether it concerned a point, was met by one, and by one that all others allow, too.
  std::vector<bool> asked(constraints_.size()), met(constraints_.size()), met_with_all(constraints_.size());
  RandomStream random(derive(random_key({}), "allowed point"));
  std::optional<Point> point = count_ ? first_point() : random_point(*this, random);
  for (int draws = 1; point; ++draws) {
    const bool allowed = allows(*point);
    if (allowed && allowed_point_.empty()) allowed_point_ = *point;
    for (size_t k = 0; k < constraints_.size(); ++k) {
      const auto meets_it = meets(k, *point);
      asked[k] = asked[k] || meets_it;
      met[k] = met[k] || meets_it.value_or(false);
      met_with_all[k] = met_with_all[k] || (meets_it && allowed);
    }
    if (!allowed_point_.empty() && std::ranges::find(met_with_all, false) == met_with_all.end()) return;
    if (count_)
      point = point_after(*point);
    else if (draws < kDraws)
      point = random_point(*this, random);
    else
      point.reset();
  }
  std::vector<const Comparison*> alone, together;
  for (size_t k = 0; k < constraints_.size(); ++k) {
    if (asked[k] && !met[k]) alone.push_back(&constraints_[k]);
    if (asked[k] && !met_with_all[k]) together.push_back(&constraints_[k]);
  }
  if (!together.empty()) refuse_constraints(alone.empty() ? together : alone, count_.has_value());
}

}  // namespace sinew::tune
