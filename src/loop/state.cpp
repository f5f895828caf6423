#include "loop/state.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "loop/exact_json.h"

namespace sinew::loop {
namespace {

using nlohmann::json;

std::string exact_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

constexpr std::pair<const char*, double forecast::Evaluations::*> kNumbersOfEvaluations[] = {
    {"last_step", &forecast::Evaluations::last_step},
    {"count", &forecast::Evaluations::count},
    {"rate", &forecast::Evaluations::rate},
    {"highest_rate", &forecast::Evaluations::highest_rate},
    {"dropped_step", &forecast::Evaluations::dropped_step}};
constexpr std::pair<const char*, double rundir::MetricForecast::*> kNumbersOfForecast[] = {
    {"best", &rundir::MetricForecast::best},
    {"low", &rundir::MetricForecast::low},
    {"high", &rundir::MetricForecast::high},
    {"none_better", &rundir::MetricForecast::none_better},
    {"seconds_low", &rundir::MetricForecast::seconds_low},
    {"seconds_high", &rundir::MetricForecast::seconds_high}};

json evaluation_json(const EvaluationState& evaluation) {
  json document = {{"best_step", evaluation.best_step.value},
                   {"best_steps", json::array()},
                   {"monitor", evaluation.monitor},
                   {"patience_step", evaluation.patience.step.value},
                   {"without_improvement", evaluation.patience.without_improvement},
                   {"objective_met", evaluation.objective_met},
                   {"stop", evaluation.stop}};
  for (const Step step : evaluation.best_steps) document["best_steps"].push_back(step.value);
  if (evaluation.best) document["best"] = exact_text(*evaluation.best);
  if (evaluation.patience.best) document["patience_best"] = exact_text(*evaluation.patience.best);
  document["last"] = exact_json(evaluation.last);
  return document;
}

// Throws exceptions of the JSON library. Documents of older versions have one best value for both monitors.
EvaluationState evaluation_of(const json& document) {
  EvaluationState evaluation;
  const auto number = [&](const char* name) -> std::optional<double> {
    if (!document.contains(name)) return std::nullopt;
    return std::strtod(document.at(name).get<std::string>().c_str(), nullptr);
  };
  evaluation.best = number("best");
  evaluation.best_step = Step(document.at("best_step"));
  if (document.contains("best_steps")) {
    for (const int64_t step : document.at("best_steps")) evaluation.best_steps.emplace_back(step);
  } else if (evaluation.best) {
    evaluation.best_steps = {evaluation.best_step};
  }
  evaluation.monitor = document.value("monitor", "");
  const bool two = document.contains("patience_step");
  evaluation.patience.best = number(two ? "patience_best" : "best");
  evaluation.patience.step = two ? Step(document.at("patience_step")) : evaluation.best_step;
  evaluation.patience.without_improvement = document.at("without_improvement");
  evaluation.objective_met = document.at("objective_met");
  evaluation.stop = document.at("stop");
  evaluation.last = exact_metrics(document.at("last"));
  return evaluation;
}

json outlook_json(const Outlook& outlook) {
  const forecast::Evaluations& evaluations = outlook.evaluations;
  json document = {{"metric", outlook.metric},
                   {"best_step", evaluations.best_step},
                   {"since_best", evaluations.since_best},
                   {"longest_pause", evaluations.longest_pause},
                   {"told", outlook.told},
                   {"short_budget", outlook.short_budget},
                   {"points", json::array()},
                   {"made", json::array()}};
  if (evaluations.best) document["best"] = exact_text(*evaluations.best);
  for (const auto& [name, value] : kNumbersOfEvaluations) document[name] = exact_text(evaluations.*value);
  for (const auto& [step, value, count] : evaluations.points)
    document["points"].push_back({exact_text(step), exact_text(value), exact_text(count)});
  for (const rundir::MetricForecast& one : outlook.made) {
    json& made = document["made"].emplace_back(json{{"step", one.step}, {"last_step", one.last_step}});
    for (const auto& [name, value] : kNumbersOfForecast) made[name] = exact_text(one.*value);
  }
  return document;
}

// Throws exceptions of the JSON library.
Outlook outlook_of(const json& document) {
  Outlook outlook;
  forecast::Evaluations& evaluations = outlook.evaluations;
  const auto number = [](const json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); };
  outlook.metric = document.at("metric");
  evaluations.best_step = document.at("best_step");
  evaluations.since_best = document.at("since_best");
  evaluations.longest_pause = document.at("longest_pause");
  outlook.told = document.at("told");
  outlook.short_budget = document.at("short_budget");
  if (document.contains("best")) evaluations.best = number(document.at("best"));
  for (const auto& [name, value] : kNumbersOfEvaluations) evaluations.*value = number(document.at(name));
  for (const json& point : document.at("points"))
    evaluations.points.push_back({number(point.at(0)), number(point.at(1)), number(point.at(2))});
  for (const json& made : document.at("made")) {
    rundir::MetricForecast& one = outlook.made.emplace_back();
    one.step = made.at("step");
    one.last_step = made.at("last_step");
    for (const auto& [name, value] : kNumbersOfForecast) one.*value = number(made.at(name));
  }
  return outlook;
}

ControlLog control_of(const json& list) {
  ControlLog log;
  for (ControlEntry& entry : entries_of_json(list.dump())) log.append(std::move(entry));
  return log;
}

// The left out samples of each split that has some, ascending.
json left_out_json(const std::set<LeftOut>& left_out) {
  json document = json::object();
  for (const LeftOut& one : left_out) document[data::to_string(one.split)].push_back(one.sample);
  return document;
}

std::set<LeftOut> left_out_of(const json& document) {
  std::set<LeftOut> left_out;
  for (const data::Split split : {data::Split::train, data::Split::val, data::Split::test}) {
    for (const int64_t sample : document.value(data::to_string(split), json::array())) left_out.insert({split, sample});
  }
  return left_out;
}

}  // namespace

json exact_json(const report::Metrics& metrics) {
  json object = json::object();
  for (const auto& [name, value] : metrics) object[name] = exact_text(value);
  return object;
}

report::Metrics exact_metrics(const json& object) {
  report::Metrics metrics;
  for (const auto& [name, text] : object.items()) metrics[name] = std::strtod(text.get<std::string>().c_str(), nullptr);
  return metrics;
}

std::string counts_text(const State& state) {
  return "step " + std::to_string(state.step.value) + " epoch " + std::to_string(state.cursor.epoch) + " offset " +
         std::to_string(state.cursor.offset) + " samples " + std::to_string(state.samples) + " tokens " +
         std::to_string(state.tokens) + " seed " + std::to_string(state.seed) + "\n";
}

std::string decisions_text(const State& state) {
  std::string text = "\n" + state.control.digest_text(state.step);
  const EvaluationState& evaluation = state.evaluation;
  text += "best " + (evaluation.best ? exact_text(*evaluation.best) : "none") + " at " +
          std::to_string(evaluation.best_step.value) + " then " +
          std::to_string(evaluation.patience.without_improvement);
  // Appended only if patience has a best value of its own, so that states with one monitor keep the digests of older
  // versions.
  if (evaluation.patience.best != evaluation.best || evaluation.patience.step != evaluation.best_step) {
    text += " patience " + (evaluation.patience.best ? exact_text(*evaluation.patience.best) : "none") + " at " +
            std::to_string(evaluation.patience.step.value);
  }
  for (const LeftOut& one : state.left_out)
    text += "\nwithout " + data::to_string(one.split) + " " + std::to_string(one.sample);
  return text;
}

json state_document(const State& state, const StateFacts& facts) {
  json document = {{"format", 1},
                   {"step", state.step.value},
                   {"cursor", {{"epoch", state.cursor.epoch}, {"offset", state.cursor.offset}}},
                   {"samples", state.samples},
                   {"tokens", state.tokens},
                   {"seed", state.seed},
                   {"control", json::parse(entries_json(state.control.entries()))},
                   {"evaluation", evaluation_json(state.evaluation)},
                   {"window", exact_json(facts.window)},
                   {"evaluation_window", exact_json(facts.evaluation_window)},
                   {"seconds", facts.seconds},
                   {"data_digest", to_hex(facts.data_digest)},
                   {"model", facts.model},
                   {"job", facts.resolved_job}};
  if (!state.outlook.metric.empty()) document["outlook"] = outlook_json(state.outlook);
  if (facts.joules > 0) document["joules"] = facts.joules;
  if (!state.left_out.empty()) document["left_out"] = left_out_json(state.left_out);
  if (!facts.records.empty()) document["records"] = facts.records;
  return document;
}

void read_document(const json& document, State& state, StateFacts& facts) {
  state.step = Step(document.at("step"));
  state.cursor = {document.at("cursor").at("epoch"), document.at("cursor").at("offset")};
  state.samples = document.at("samples");
  state.tokens = document.at("tokens");
  state.seed = document.at("seed");
  state.control = control_of(document.at("control"));
  state.evaluation = evaluation_of(document.at("evaluation"));
  state.outlook = document.contains("outlook") ? outlook_of(document.at("outlook")) : Outlook();
  state.left_out = left_out_of(document.value("left_out", json::object()));
  facts.window = exact_metrics(document.at("window"));
  facts.evaluation_window = exact_metrics(document.value("evaluation_window", json::object()));
  facts.seconds = document.value("seconds", 0.0);
  facts.joules = document.value("joules", 0.0);
  facts.resolved_job = document.at("job");
  facts.model = document.value("model", "");
  facts.records = document.value("records", "");
  if (!from_hex(document.at("data_digest").get<std::string>(), facts.data_digest))
    throw Error("CHECKPOINT_UNREADABLE", "data_digest is no digest", "");
}

}  // namespace sinew::loop
