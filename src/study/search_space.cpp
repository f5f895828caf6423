#include "study/search_space.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number_text.h"
#include "study/study.h"

namespace sinew::study {
namespace {

using nlohmann::json;

tune::Parameter::Kind kind_of(const spec::SearchParameter& parameter) {
  using From = spec::SearchParameter::Kind;
  using To = tune::Parameter::Kind;
  if (parameter.kind == From::real) return To::real;
  if (parameter.kind == From::whole) return To::integer;
  return parameter.ordered ? To::ordinal : To::categorical;
}

std::vector<tune::Condition> conditions_of(const spec::SearchParameter& parameter,
                                           const std::vector<spec::SearchParameter>& search) {
  std::vector<tune::Condition> conditions;
  for (const auto& [key, values] : parameter.only_if) {
    const auto parent = std::ranges::find(search, key, &spec::SearchParameter::key);
    tune::Condition condition{static_cast<size_t>(parent - search.begin()), {}};
    for (const std::string& value : values)
      condition.allowed.push_back(
          static_cast<double>(std::ranges::find(parent->choices, value) - parent->choices.begin()));
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace

tune::Space space_of(const spec::TuneOptions& tune) {
  std::vector<tune::Parameter> parameters;
  for (const spec::SearchParameter& given : tune.search) {
    tune::Parameter parameter;
    parameter.name = given.key;
    parameter.kind = kind_of(given);
    parameter.low = given.low;
    parameter.high = given.high;
    parameter.log = given.log;
    parameter.step = given.step;
    for (const std::string& choice : given.choices) parameter.choices.push_back(json(choice).dump());
    parameter.conditions = conditions_of(given, tune.search);
    parameters.push_back(std::move(parameter));
  }
  std::vector<Comparison> constraints;
  for (const std::string& text : tune.parameter_constraints) constraints.emplace_back(text);
  return tune::Space(std::move(parameters), std::move(constraints));
}

void check_search(const spec::Job& job, const std::string& file) {
  if (job.tune.search.empty()) return;
  try {
    space_of(job.tune);
  } catch (const Error& error) {
    throw UsageError(error.code, file + ": " + error.what(), error.hint);
  }
}

std::vector<std::string> overrides_of(const tune::Space& space, const tune::Point& point) {
  std::vector<std::string> overrides;
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    const tune::Parameter& parameter = space[i];
    const std::string value = parameter.numeric()
                                  ? number_text(point[i])
                                  : json::parse(parameter.choices[static_cast<size_t>(point[i])]).get<std::string>();
    overrides.push_back(parameter.name + "=" + value);
  }
  return overrides;
}

}  // namespace sinew::study
