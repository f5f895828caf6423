// Writes and parses the JSON of VersionFacts, the metadata of a version.
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "registry/registry.h"
#include "report/report.h"

namespace sinew::registry {

using nlohmann::json;

std::string facts_json(const VersionFacts& facts) {
  json metrics = json::object();
  for (const auto& [name, value] : facts.metrics) metrics[name] = json_number(value);
  const json document{{"run", facts.run},
                      {"status", facts.status},
                      {"metrics", std::move(metrics)},
                      {"monitor", facts.monitor},
                      {"data", facts.data},
                      {"digest", facts.digest},
                      {"code", facts.code},
                      {"environment", facts.environment},
                      {"checks", facts.checks},
                      {"bytes", facts.bytes}};
  return dump_json(document);
}

std::expected<VersionFacts, std::string> parse_facts(std::string_view text) {
  const json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 5; }, false);
  if (!document.is_object()) return std::unexpected("not a JSON object");
  try {
    VersionFacts facts;
    facts.run = document.value("run", "");
    facts.status = document.value("status", "");
    const json metrics = document.value("metrics", json::object());
    for (const auto& [name, value] : metrics.items()) {
      const auto number = number_in_json(value);
      if (!number) return std::unexpected("metric " + name + " is not a number");
      facts.metrics[name] = *number;
    }
    facts.monitor = document.value("monitor", "");
    facts.data = document.value("data", facts.data);
    facts.digest = document.value("digest", "");
    facts.code = document.value("code", "");
    facts.environment = document.value("environment", "");
    facts.checks = document.value("checks", facts.checks);
    facts.bytes = document.value("bytes", int64_t{0});
    return facts;
  } catch (const json::exception& error) {
    return std::unexpected(std::string("a field has the wrong type: ") + error.what());
  }
}

VersionFacts facts_of(store::Store& store, const store::Record& version) {
  VersionFacts facts;
  // If MLflow's client made the version, web/ wrote the body. Such a body is an object that names no run.
  if (auto parsed = parse_facts(version.body); parsed && !parsed->run.empty()) {
    facts = std::move(*parsed);
  } else if (const auto run = store.find({store::Kind::kRun, version.parent})) {
    for (const auto& [name, metric] : run->metrics) facts.metrics[name] = metric.last.value;
    facts.run = version.parent;
    facts.status = run->state == store::RunState::kFinished ? "done" : to_string(run->state);
  }
  facts.model = version.subject.id;
  facts.version = version.subject.number;
  return facts;
}

}  // namespace sinew::registry
