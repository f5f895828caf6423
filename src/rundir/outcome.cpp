#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/joined.h"
#include "base/json_text.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kStatuses = {"done", "failed", "stopped", "budget"};

// Reads the fields of one JSON object. Describes the first field of a wrong type in `wrong`; the caller then rejects
// the whole document.
class ObjectFields {
 public:
  ObjectFields(const Json& object, std::string& wrong) : object_(object), wrong_(wrong) {}

  void text(const char* name, std::string& out) {
    if (const Json* value = find(name); value != nullptr) {
      value->is_string() ? void(out = value->get<std::string>()) : refuse(name, "text");
    }
  }
  void number(const char* name, double& out) {
    if (const Json* value = find(name); value != nullptr) {
      const auto number = number_in_json(*value);
      number ? void(out = *number) : refuse(name, "a number");
    }
  }
  template <typename Integer>
  void integer(const char* name, Integer& out) {
    if (const Json* value = find(name); value != nullptr) {
      value->is_number_integer() ? void(out = value->get<Integer>()) : refuse(name, "a whole number");
    }
  }
  void boolean(const char* name, bool& out) {
    if (const Json* value = find(name); value != nullptr) {
      value->is_boolean() ? void(out = value->get<bool>()) : refuse(name, "true or false");
    }
  }
  const Json* object(const char* name) {
    const Json* value = find(name);
    if (value == nullptr || value->is_object()) return value;
    refuse(name, "an object");
    return nullptr;
  }
  void numbers(const char* name, std::map<std::string, double>& out) {
    const Json* values = object(name);
    if (values == nullptr) return;
    ObjectFields of_values(*values, wrong_);
    for (const auto& [key, value] : values->items()) of_values.number(key.c_str(), out[key]);
  }
  void number_list(const char* name, std::vector<double>& out) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return refuse(name, "a list of numbers");
    for (const Json& item : *value) {
      const auto number = number_in_json(item);
      if (!number) return refuse(name, "a list of numbers");
      out.push_back(*number);
    }
  }
  std::vector<const Json*> objects(const char* name) {
    const Json* value = find(name);
    std::vector<const Json*> list;
    if (value == nullptr) return list;
    for (const Json& item : *value) list.push_back(&item);
    if (!value->is_array() || !std::ranges::all_of(list, [](const Json* item) { return item->is_object(); })) {
      refuse(name, "a list of objects");
      list.clear();
    }
    return list;
  }

 private:
  const Json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void refuse(const char* name, const char* kind) {
    if (wrong_.empty()) wrong_ = std::string("\"") + name + "\" is not " + kind;
  }

  const Json& object_;
  std::string& wrong_;
};

// Describes a field that is equal in writing and reading.
template <typename Of, typename Number>
struct NumberField {
  const char* name;
  Number Of::*value;
};
constexpr NumberField<ResourceUse, double> kFractions[] = {
    {"cores", &ResourceUse::cores},
    {"cpu_seconds", &ResourceUse::cpu_seconds},
    {"queued_seconds", &ResourceUse::queued_seconds},
    {"throttled_seconds", &ResourceUse::throttled_seconds},
    {"memory_stalled_seconds", &ResourceUse::memory_stalled_seconds},
    {"memory_stopped_seconds", &ResourceUse::memory_stopped_seconds},
    {"seconds", &ResourceUse::seconds}};
constexpr NumberField<ResourceUse, int64_t> kAmounts[] = {{"major_faults", &ResourceUse::major_faults},
                                                          {"disk_read_bytes", &ResourceUse::disk_read_bytes},
                                                          {"disk_written_bytes", &ResourceUse::disk_written_bytes},
                                                          {"peak_memory_bytes", &ResourceUse::peak_memory_bytes},
                                                          {"memory_limit_bytes", &ResourceUse::memory_limit_bytes}};
constexpr NumberField<NetworkUse, int64_t> kNetwork[] = {{"network_sent_bytes", &NetworkUse::sent_bytes},
                                                         {"network_received_bytes", &NetworkUse::received_bytes}};
constexpr NumberField<LayerUse, int64_t> kLayerCounts[] = {{"calls", &LayerUse::calls},
                                                           {"parameters", &LayerUse::parameters}};
constexpr NumberField<LayerUse, double> kLayerAmounts[] = {{"flops", &LayerUse::flops}, {"bytes", &LayerUse::bytes}};
constexpr NumberField<MemoryUse, int64_t> kMemory[] = {{"program", &MemoryUse::program},
                                                       {"data", &MemoryUse::data},
                                                       {"parameters", &MemoryUse::parameters},
                                                       {"optimizer", &MemoryUse::optimizer}};

Json json_of(const StageTimes& time) {
  Json json = {{"lanes", time.lanes}};
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    json[std::string(name_of(stage))] = json_number(std::round(time[stage] * 1e6) / 1e6);
  }
  return json;
}

Json json_of(const ResourceUse& use) {
  Json json = Json::object();
  for (const auto& [name, value] : kFractions) json[name] = json_number(std::round(use.*value * 1e6) / 1e6);
  for (const auto& [name, value] : kAmounts) json[name] = use.*value;
  for (const auto& [name, value] : kNetwork) json[name] = use.network.*value;
  // Readers that have no use for the duration get the rates; Sinew itself computes them.
  for (const auto& [name, bytes] : {std::pair{"disk_read", use.disk_read_bytes},
                                    {"disk_written", use.disk_written_bytes},
                                    {"network_sent", use.network.sent_bytes},
                                    {"network_received", use.network.received_bytes}})
    json[std::string(name) + "_bytes_per_second"] = json_number(std::round(use.a_second(bytes)));
  return json;
}

// Appends the fields of the model to the report.
void add(Json& json, const ModelUse& use) {
  json["flops_per_step"] = json_number(use.flops_per_step);
  json["layers"] = Json::array();
  for (const LayerUse& layer : use.layers) {
    Json one = {{"name", layer.name}};
    for (const auto& [name, value] : kLayerCounts) one[name] = layer.*value;
    for (const auto& [name, value] : kLayerAmounts) one[name] = json_number(layer.*value);
    json["layers"].push_back(one);
  }
  json["attempt"] = {{"steps", use.steps}, {"flops", json_number(use.flops)}, {"gradient_bytes", use.gradient_bytes}};
}

constexpr NumberField<LoadUse, int64_t> kLoadCounts[] = {
    {"threads", &LoadUse::threads}, {"samples", &LoadUse::samples}, {"read_bytes", &LoadUse::read_bytes}};

std::string cpu_name(LoadStage stage) {
  return std::string(name_of(stage)) + "_cpu_seconds";
}

Json json_of(const LoadUse& use) {
  Json json = Json::object();
  for (const auto& [name, value] : kLoadCounts) json[name] = use.*value;
  json["read_seconds"] = json_number(std::round(use.read_seconds * 1e6) / 1e6);
  for (size_t i = 0; i < kLoadStages; ++i) {
    const auto stage = static_cast<LoadStage>(i);
    json[cpu_name(stage)] = json_number(std::round(use[stage] * 1e6) / 1e6);
  }
  return json;
}

constexpr NumberField<MetricForecast, double> kForecast[] = {{"best", &MetricForecast::best},
                                                             {"low", &MetricForecast::low},
                                                             {"high", &MetricForecast::high},
                                                             {"none_better", &MetricForecast::none_better}};
constexpr NumberField<MetricForecast, double> kForecastTime[] = {{"seconds_low", &MetricForecast::seconds_low},
                                                                 {"seconds_high", &MetricForecast::seconds_high}};

Json json_of(const MetricForecasts& forecasts) {
  Json json = {{"metric", forecasts.metric}, {"made", Json::array()}};
  if (forecasts.best) json.update({{"best", json_number(*forecasts.best)}, {"best_step", forecasts.best_step}});
  for (const MetricForecast& one : forecasts.made) {
    Json& made = json["made"].emplace_back(Json{{"step", one.step}, {"last_step", one.last_step}});
    for (const auto& [name, value] : kForecast) made[name] = json_number(one.*value);
    for (const auto& [name, value] : kForecastTime) {
      if (one.*value >= 0) made[name] = json_number(std::round(one.*value * 1e3) / 1e3);
    }
  }
  return json;
}

void read_forecasts(ObjectFields fields, std::string& wrong, MetricForecasts& forecasts) {
  fields.text("metric", forecasts.metric);
  double best = std::numeric_limits<double>::quiet_NaN();
  fields.number("best", best);
  if (!std::isnan(best)) forecasts.best = best;
  fields.integer("best_step", forecasts.best_step);
  for (const Json* made : fields.objects("made")) {
    ObjectFields of_made(*made, wrong);
    MetricForecast& one = forecasts.made.emplace_back();
    of_made.integer("step", one.step);
    of_made.integer("last_step", one.last_step);
    for (const auto& [name, value] : kForecast) of_made.number(name, one.*value);
    for (const auto& [name, value] : kForecastTime) of_made.number(name, one.*value);
  }
}

void read_loading(ObjectFields fields, LoadUse& use) {
  for (const auto& [name, value] : kLoadCounts) fields.integer(name, use.*value);
  fields.number("read_seconds", use.read_seconds);
  for (size_t i = 0; i < kLoadStages; ++i)
    fields.number(cpu_name(static_cast<LoadStage>(i)).c_str(), use.cpu_seconds[i]);
}

// A condition that a later version knows is left out.
void read_experiment(ObjectFields fields, Outcome& outcome) {
  std::string name;
  fields.text("condition", name);
  ConditionTime found;
  fields.integer("steps", found.steps);
  fields.number("step_seconds", found.seconds);
  fields.number("ratio", found.ratio.expected);
  fields.number("ratio_low", found.ratio.low);
  fields.number("ratio_high", found.ratio.high);
  const auto condition = condition_of(name);
  if (!condition) return;
  found.condition = *condition;
  outcome.experiments.push_back(found);
}

void read_model(ObjectFields& fields, std::string& wrong, std::optional<ModelUse>& model) {
  const Json* attempt = fields.object("attempt");
  if (attempt == nullptr) return;
  ModelUse& out = model.emplace();
  fields.number("flops_per_step", out.flops_per_step);
  for (const Json* layer : fields.objects("layers")) {
    ObjectFields of_layer(*layer, wrong);
    LayerUse& one = out.layers.emplace_back();
    of_layer.text("name", one.name);
    for (const auto& [name, value] : kLayerCounts) of_layer.integer(name, one.*value);
    for (const auto& [name, value] : kLayerAmounts) of_layer.number(name, one.*value);
  }
  ObjectFields of_attempt(*attempt, wrong);
  of_attempt.integer("steps", out.steps);
  of_attempt.number("flops", out.flops);
  of_attempt.integer("gradient_bytes", out.gradient_bytes);
}

}  // namespace

std::string outcome_json(const Outcome& outcome) {
  Json json = {{"status", outcome.status},
               {"exit_code", outcome.exit_code},
               {"job", outcome.job},
               {"started", json_number(outcome.started_wall_seconds)},
               {"seconds", json_number(outcome.seconds)},
               {"steps", outcome.steps},
               {"samples", outcome.samples},
               {"epochs", json_number(outcome.epochs)}};
  if (!outcome.digest.empty()) json["digest"] = outcome.digest;
  if (outcome.best) {
    json["best"] = {
        {"metric", outcome.best->metric}, {"value", json_number(outcome.best->value)}, {"step", outcome.best->step}};
  }
  if (outcome.objective) {
    json["objective"] = {{"text", outcome.objective->text},
                         {"met", outcome.objective->met},
                         {"value", json_number(outcome.objective->value)}};
  }
  Json& last = json["last"] = Json::object();
  for (const auto& [name, value] : outcome.last) last[name] = json_number(value);
  for (const FoldResult& fold : outcome.folds) {
    Json metrics = Json::object();
    for (const auto& [name, value] : fold.metrics) metrics[name] = json_number(value);
    json["folds"].push_back({{"fold", fold.fold}, {"run", fold.run}, {"status", fold.status}, {"metrics", metrics}});
  }
  if (outcome.time) json["time"] = json_of(*outcome.time);
  if (outcome.resources) json["resources"] = json_of(*outcome.resources);
  if (outcome.loading) json["loading"] = json_of(*outcome.loading);
  for (const double share : outcome.shares) json["shares"].push_back(json_number(share));
  if (outcome.memory) {
    for (const auto& [name, bytes] : kMemory) json["memory_bytes"][name] = (*outcome.memory).*bytes;
  }
  for (const ConditionTime& found : outcome.experiments)
    json["experiments"].push_back({{"condition", name_of(found.condition)},
                                   {"steps", found.steps},
                                   {"step_seconds", json_number(found.seconds)},
                                   {"ratio", json_number(found.ratio.expected)},
                                   {"ratio_low", json_number(found.ratio.low)},
                                   {"ratio_high", json_number(found.ratio.high)}});
  if (outcome.model) add(json, *outcome.model);
  if (outcome.forecasts) json["forecasts"] = json_of(*outcome.forecasts);
  if (outcome.cost) json["cost"] = json_number(*outcome.cost);
  if (outcome.kilowatt_hours) json["energy_kwh"] = json_number(*outcome.kilowatt_hours);
  if (!outcome.error.empty()) json["error"] = outcome.error;
  if (!outcome.hint.empty()) json["hint"] = outcome.hint;
  if (!outcome.earlier_status.empty()) json["earlier_status"] = outcome.earlier_status;
  return dump_json(json, 2) + "\n";
}

namespace {

std::optional<Outcome> parse_any(std::string_view text, std::string* why) {
  std::string wrong;
  const auto refuse = [&](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  const Json json = Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth < 8; }, false);
  if (!json.is_object()) return refuse("not a JSON object");
  Outcome outcome;
  ObjectFields fields(json, wrong);
  outcome.status.clear();
  fields.text("status", outcome.status);
  fields.integer("exit_code", outcome.exit_code);
  fields.text("job", outcome.job);
  fields.number("started", outcome.started_wall_seconds);
  fields.number("seconds", outcome.seconds);
  fields.integer("steps", outcome.steps);
  fields.integer("samples", outcome.samples);
  fields.number("epochs", outcome.epochs);
  fields.text("digest", outcome.digest);
  fields.text("error", outcome.error);
  fields.text("hint", outcome.hint);
  fields.text("earlier_status", outcome.earlier_status);
  if (const Json* best = fields.object("best"); best != nullptr) {
    ObjectFields of_best(*best, wrong);
    BestMetric& out = outcome.best.emplace();
    of_best.text("metric", out.metric);
    of_best.number("value", out.value);
    of_best.integer("step", out.step);
  }
  if (const Json* objective = fields.object("objective"); objective != nullptr) {
    ObjectFields of_objective(*objective, wrong);
    ObjectiveResult& out = outcome.objective.emplace();
    out.value = std::numeric_limits<double>::quiet_NaN();
    of_objective.text("text", out.text);
    of_objective.boolean("met", out.met);
    of_objective.number("value", out.value);
  }
  fields.numbers("last", outcome.last);
  if (const Json* time = fields.object("time"); time != nullptr) {
    ObjectFields of_time(*time, wrong);
    StageTimes& out = outcome.time.emplace();
    of_time.integer("lanes", out.lanes);
    for (size_t i = 0; i < kStages; ++i)
      of_time.number(std::string(name_of(static_cast<Stage>(i))).c_str(), out.seconds[i]);
  }
  if (const Json* resources = fields.object("resources"); resources != nullptr) {
    ObjectFields of_resources(*resources, wrong);
    ResourceUse& out = outcome.resources.emplace();
    for (const auto& [name, value] : kFractions) of_resources.number(name, out.*value);
    for (const auto& [name, value] : kAmounts) of_resources.integer(name, out.*value);
    for (const auto& [name, value] : kNetwork) of_resources.integer(name, out.network.*value);
  }
  if (const Json* loading = fields.object("loading"); loading != nullptr)
    read_loading(ObjectFields(*loading, wrong), outcome.loading.emplace());
  fields.number_list("shares", outcome.shares);
  if (const Json* memory = fields.object("memory_bytes"); memory != nullptr) {
    ObjectFields of_memory(*memory, wrong);
    MemoryUse& out = outcome.memory.emplace();
    for (const auto& [name, bytes] : kMemory) of_memory.integer(name, out.*bytes);
  }
  for (const Json* found : fields.objects("experiments")) read_experiment(ObjectFields(*found, wrong), outcome);
  read_model(fields, wrong, outcome.model);
  if (const Json* forecasts = fields.object("forecasts"); forecasts != nullptr)
    read_forecasts(ObjectFields(*forecasts, wrong), wrong, outcome.forecasts.emplace());
  for (const auto& [name, field] : {std::pair{"cost", &outcome.cost}, {"energy_kwh", &outcome.kilowatt_hours}}) {
    if (json.contains(name)) fields.number(name, field->emplace());
  }
  for (const Json* fold : fields.objects("folds")) {
    ObjectFields of_fold(*fold, wrong);
    FoldResult& out = outcome.folds.emplace_back();
    of_fold.integer("fold", out.fold);
    of_fold.text("run", out.run);
    of_fold.text("status", out.status);
    of_fold.numbers("metrics", out.metrics);
  }
  if (!wrong.empty()) return refuse(wrong);
  return outcome;
}

// Refuses an outcome with another status.
template <typename Statuses>
std::optional<Outcome> with_status(std::optional<Outcome> outcome, const Statuses& statuses, std::string* why) {
  if (!outcome || std::ranges::find(statuses, outcome->status) != std::ranges::end(statuses)) return outcome;
  if (why != nullptr) *why = "\"status\" is none of " + joined(statuses, ", ");
  return std::nullopt;
}

}  // namespace

std::optional<Outcome> parse_outcome(std::string_view text, std::string* why) {
  return with_status(parse_any(text, why), kStatuses, why);
}

std::optional<Outcome> parse_accounts(std::string_view text, std::string* why) {
  return with_status(parse_any(text, why), std::array{std::string_view(kRunning)}, why);
}

void remove_accounts(Disk& disk, const std::string& run_directory) {
  const std::string file = file_in(run_directory, kAccountsFile);
  try {
    if (disk.exists(file)) disk.remove_file(file);
  } catch (const DiskError&) {  // see rundir.h
  }
}

}  // namespace sinew::rundir
