// What the limits of a budget mean in time.
#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "spec/spec.h"

namespace sinew::spec {
namespace {

constexpr double kHour = 3600, kJoulesOfKilowattHour = 3.6e6;

// A setting with three digits that allows at least `value`.
std::string rounded_up(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return rounded_text(std::ceil(value / unit - 1e-9) * unit, 4);
}

// Keeps the smaller of two limits.
void tighten(TimeLimit& limit, double seconds, const char* option) {
  if (limit.seconds <= 0 || seconds < limit.seconds) limit = {seconds, option};
}

}  // namespace

TimeLimit time_limit(const BudgetOptions& budget, const MeasuredEnergy& measured) {
  TimeLimit limit{.seconds = budget.seconds};
  if (budget.cost > 0 && budget.price > 0) tighten(limit, budget.cost / budget.price * kHour, "budget.cost");
  const double joules = budget.kilowatt_hours * kJoulesOfKilowattHour;
  if (joules <= 0) return limit;
  if (budget.watts > 0) {
    tighten(limit, joules / budget.watts, "budget.energy");
  } else if (measured.joules >= joules) {
    tighten(limit, std::max(1e-9, measured.seconds), "budget.energy");  // 0 would be no limit
  } else if (measured.watts > 0) {
    tighten(limit, measured.seconds + (joules - measured.joules) / measured.watts, "budget.energy");
  }
  return limit;
}

std::string budget_setting(const std::string& option, const BudgetOptions& budget, double seconds, double watts) {
  if (option == "budget.cost") return option + "=" + rounded_up(seconds / kHour * budget.price);
  if (option == "budget.energy" && watts <= 0) return option + "=" + rounded_up(2 * budget.kilowatt_hours);
  if (option == "budget.energy") return option + "=" + rounded_up(seconds * watts / kJoulesOfKilowattHour);
  return "budget.time=" + to_string(Duration{std::ceil(seconds), Duration::Unit::seconds});
}

}  // namespace sinew::spec
