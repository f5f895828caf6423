#include "study/page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_text.h"
#include "study/page_assets.h"
#include "study/text.h"

namespace sinew::study {
namespace {

using nlohmann::json;

// Writes null for a value that the page cannot draw: an infinity, NaN, or an inactive parameter.
json number(double value) {
  return std::isfinite(value) ? json(value) : json();
}

const char* name_of(tune::TrialState state) {
  switch (state) {
    case tune::TrialState::running: return "running";
    case tune::TrialState::paused: return "paused";
    case tune::TrialState::complete: return "complete";
    case tune::TrialState::pruned: return "pruned";
    case tune::TrialState::failed: return "failed";
  }
  return "";
}

json parameters_of(const tune::Space& space) {
  json list = json::array();
  for (size_t i = 0; i < space.size(); ++i) {
    const tune::Parameter& parameter = space[i];
    json one = {{"name", parameter.name}, {"log", parameter.log}, {"low", parameter.low}, {"high", parameter.high}};
    if (!parameter.numeric()) {
      one["choices"] = json::array();
      for (const std::string& choice : parameter.choices) {
        const json value = json::parse(choice);
        one["choices"].push_back(value.is_string() ? value : json(choice));
      }
    }
    list.push_back(std::move(one));
  }
  return list;
}

json trials_of(const tune::Study& study) {
  json list = json::array();
  for (const tune::Trial& trial : study.trials()) {
    json one = {{"id", trial.id}, {"state", name_of(trial.state)}, {"by", trial.by}, {"why", trial.why}};
    one["values"] = json::array();
    for (size_t k = 0; k < study.objectives(); ++k)
      one["values"].push_back(trial.values.empty() ? json() : number(trial.values[k]));
    one["violates"] = std::ranges::any_of(trial.constraints, [](double violation) { return !(violation <= 0); });
    for (const double value : trial.point) one["point"].push_back(number(value));
    one["curve"] = json::array();
    for (const tune::Report& report : trial.reports) one["curve"].push_back({report.step, number(report.value)});
    list.push_back(std::move(one));
  }
  return list;
}

json objectives_of(const StudyAim& aim) {
  json list = json::array();
  for (const auto& [name, minimize] : aim.objectives) list.push_back({{"metric", name}, {"minimize", minimize}});
  return list;
}

json importance_json(const tune::Study& study, size_t objective) {
  const auto importance = tune::importance_of(study, objective);
  if (!importance) return {};
  json out = {{"main", importance->alone}, {"pairs", json::array()}, {"trials", importance->trials}};
  for (const auto& pair : importance->pairs) out["pairs"].push_back({pair.first, pair.second, pair.share});
  return out;
}

// Escapes every '<', because a name that holds "</script>" would end the element that holds the JSON. In JSON, '<'
// occurs only inside strings.
std::string without_markup(std::string json_text) {
  for (size_t at = 0; (at = json_text.find('<', at)) != std::string::npos;) json_text.replace(at, 1, "\\u003c");
  return json_text;
}

// Returns the template with each placeholder replaced. Placeholders inside inserted values stay as they are.
std::string fill_template(std::string_view page,
                          const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  std::string filled;
  for (const auto& [placeholder, value] : values) {
    const size_t at = page.find(placeholder);
    SINEW_CHECK(at != std::string_view::npos, placeholder);
    filled.append(page.substr(0, at)).append(value);
    page.remove_prefix(at + placeholder.size());
  }
  return filled.append(page);
}

}  // namespace

std::string study_page(const std::string& summary, const tune::Study& study, const StudyHead& head) {
  json importance = json::array();
  for (size_t k = 0; k < study.objectives(); ++k) importance.push_back(importance_json(study, k));
  json data = {{"aim", aim_text(head.aim)},
               {"objectives", objectives_of(head.aim)},
               {"constrained", !head.aim.constraints.empty()},
               {"best", tune::best_trials(study)},
               {"sampler", head.sampler},
               {"pruner", head.pruner},
               {"planned", study.options().budget},
               {"summary", summary},
               {"parameters", parameters_of(study.space())},
               {"trials", trials_of(study)},
               {"importance", importance}};
  const std::string study_text = without_markup(dump_json(data));
  return fill_template(kPageHtml, {{"{{style}}", kPageStyle}, {"{{study}}", study_text}, {"{{script}}", kPageScript}});
}

}  // namespace sinew::study
