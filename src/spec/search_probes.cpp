// Implements search_text, which writes tune.search as text, and probes_of, which lists values for which read_job checks
// the rules: the ends of each range, and the choices.
#include <algorithm>
#include <cmath>

#include "base/comparison.h"
#include "base/joined.h"
#include "spec/amounts.h"
#include "spec/search.h"
#include "spec/search_parameter.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

using Form = SearchParameter::Kind;

std::string values_text(const std::vector<std::string>& values) {
  return "[" + listed(values) + "]";
}

std::string parameter_text(const SearchParameter& parameter) {
  std::string text;
  if (parameter.kind == Form::choice) {
    if (parameter.only_if.empty() && !parameter.ordered) return values_text(parameter.choices);
    text = "choices: " + values_text(parameter.choices) + (parameter.ordered ? ", ordered: true" : "");
  } else {
    text = "low: " + number_text(parameter.low) + ", high: " + number_text(parameter.high);
    if (parameter.log) text += ", log: true";
    if (parameter.step > 0) text += ", step: " + number_text(parameter.step);
  }
  const std::string condition = joined(parameter.only_if, ", ", [](const auto& one) {
    const auto& [key, values] = one;
    return key + ": " + values_text(values);
  });
  return "{" + text + (condition.empty() ? "" : ", if: {" + condition + "}") + "}";
}

// Returns the parameter's value under these overrides, or else in the job. Returns NaN if the value is not a number.
double number_under(const Job& job, const std::vector<std::string>& overrides, const std::string& key) {
  std::string text;
  if (key.starts_with(kParams)) {
    const auto found = std::ranges::find(job.command.params, key.substr(kParams.size()), &NamedValue::name);
    if (found != job.command.params.end()) text = found->value;
  } else {
    text = value_text(*find_option(key), job);
  }
  for (const std::string& one : overrides) {
    if (one.starts_with(key + "=")) text = one.substr(key.size() + 1);
  }
  return (is_number(text) ? parse_number(text) : std::nullopt).value_or(std::nan(""));
}

// Returns whether the constraints allow these overrides. Parameters without an override have their values of the job.
// Skips constraints that do not name the probed parameter, because the job's values may break them.
bool is_allowed(const Job& job, const std::vector<std::string>& overrides) {
  const std::string& probed = overrides.back();
  return std::ranges::all_of(job.tune.parameter_constraints, [&](const std::string& text) {
    const Comparison constraint(text);
    std::vector<double> values;
    bool names_it = false;
    for (const std::string& name : constraint.names()) {
      names_it |= probed.starts_with(name + "=");
      values.push_back(number_under(job, overrides, name));
    }
    return !names_it || constraint.holds(values);
  });
}

// Adds overrides that meet the parameter's "if:", so that the parameter is active.
void meet_conditions(const std::vector<SearchParameter>& search, const SearchParameter& parameter,
                     std::vector<std::string>& overrides) {
  for (const auto& [key, values] : parameter.only_if) {
    const std::string text = key + "=" + values.front();
    // An earlier call has added this override and those that it needs.
    if (std::ranges::find(overrides, text) != overrides.end()) continue;
    meet_conditions(search, *std::ranges::find(search, key, &SearchParameter::key), overrides);
    overrides.push_back(text);
  }
}

}  // namespace

std::string search_text(const std::vector<SearchParameter>& search) {
  const auto text = [](const SearchParameter& parameter) { return parameter.key + ": " + parameter_text(parameter); };
  return "{" + joined(search, ", ", text) + "}";
}

std::string overridden(const std::vector<SearchParameter>& search, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (std::ranges::find(search, key, &SearchParameter::key) != search.end()) return key;
  }
  return "";
}

std::vector<SearchProbe> probes_of(const Job& job, size_t most) {
  const std::vector<SearchParameter>& search = job.tune.search;
  std::vector<SearchProbe> probes;
  for (size_t i = 0; i < search.size() && probes.size() < most; ++i) {
    const SearchParameter& parameter = search[i];
    std::vector<std::string> values = parameter.choices;
    if (parameter.kind != Form::choice) values = {number_text(parameter.low), number_text(parameter.high)};
    if (values.size() > most - probes.size()) values.resize(most - probes.size());
    for (const std::string& value : values) {
      SearchProbe probe{i, {}};
      meet_conditions(search, parameter, probe.overrides);
      probe.overrides.push_back(parameter.key + "=" + value);
      if (is_allowed(job, probe.overrides)) probes.push_back(std::move(probe));
    }
  }
  return probes;
}

}  // namespace sinew::spec
