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

const Comparison* Space::violated(const Point& point) const {
  std::vector<double> values;
  for (size_t k = 0; k < constraints_.size(); ++k) {
    values.clear();
    for (const size_t i : constrained_[k]) {
      if (!std::isnan(point[i])) values.push_back(number_of(i, point[i]));
    }
    if (values.size() == constrained_[k].size() && !constraints_[k].holds(values)) return &constraints_[k];
  }
  return nullptr;
}

size_t Space::last_named(const Comparison& violated) const {
  return std::ranges::max(constrained_[static_cast<size_t>(&violated - constraints_.data())]);
}

bool Space::concerns(size_t constraint, const Point& point) const {
  return std::ranges::none_of(constrained_[constraint], [&](size_t i) { return std::isnan(point[i]); });
}

// One that they allow; and of each constraint one among those whose parameters are all there, or a branch of the space
// would be shut without a word. Of a continuum by chance alone: an equality of numbers may hold in its middle and
// hardly anywhere else.
void Space::find_allowed_point() {
  if (constraints_.empty()) return;
  std::vector<bool> asked(constraints_.size()), met(constraints_.size());
  RandomStream random(derive(random_key({}), "allowed point"));
  std::optional<Point> point = count_ ? first_point() : random_point(*this, random);
  for (int draws = 1; point; ++draws) {
    const bool allowed = allows(*point);
    if (allowed && allowed_point_.empty()) allowed_point_ = *point;
    for (size_t k = 0; k < constraints_.size(); ++k) {
      if (!concerns(k, *point)) continue;
      asked[k] = true;
      met[k] = met[k] || allowed;
    }
    if (!allowed_point_.empty() && std::ranges::find(met, false) == met.end()) return;
    if (count_)
      point = point_after(*point);
    else if (draws < kDraws)
      point = random_point(*this, random);
    else
      point.reset();
  }
  std::string all;
  bool equality = false;
  for (size_t k = 0; k < constraints_.size(); ++k) {
    if (!asked[k] || met[k]) continue;
    all += (all.empty() ? "'" : ", '") + constraints_[k].text() + "'";
    equality |= constraints_[k].text().find("==") != std::string::npos;
  }
  if (all.empty()) return;
  throw Error((count_ ? "no point of the search meets " : "none of 200,000 points drawn at random meets ") + all,
              equality && !count_ ? "for an equality, vary one of its parameters only"
                                  : "wider ranges or other values, or fewer constraints");
}

}  // namespace sinew::tune
