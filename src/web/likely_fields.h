// For tests and fuzzing: values of a request's fields that are likely to be valid, so that the request gets beyond the
// checks of its fields.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "http/http.h"
#include "web/context.h"
#include "web/fields.h"
#include "web/route_fields.h"

namespace sinew::web {

class LikelyFields {
 public:
  // Returns a number below `below`.
  using Choose = std::function<uint32_t(uint32_t below)>;
  explicit LikelyFields(const Choose& choose) : choose_(choose) {}

  // Returns a value for the parameter `name` of a path, or `otherwise`.
  static std::string path_part(const std::string& name, std::string otherwise) {
    static const std::map<std::string, std::string> kParts{{"run", "r0"},         {"model", "m"},   {"version", "1"},
                                                           {"alias", "champion"}, {"key*", "loss"}, {"tag_key", "k"},
                                                           {"model_id", "l0"}};
    const auto known = kParts.find(name);
    return known == kParts.end() ? std::move(otherwise) : known->second;
  }
  Json body(const Route& route) {
    Json made = Json::object();
    for (const Field& field : parse_fields(body_fields_of(route))) {
      if (field.required || choose_(2) == 0) made[field.name] = value(field);
    }
    return made;
  }
  void add_query(const Route& route, http::Request& request) {
    for (const Field& field : parse_fields(query_fields_of(route))) {
      if (!field.required && choose_(2) != 0) continue;
      const Json made = value(field);
      if (made.is_array() && made.empty()) continue;
      const Json& first = made.is_array() ? made[0] : made;
      request.query[field.name] = first.is_string() ? first.get<std::string>() : dump_json(first);
    }
  }

 private:
  // Returns a value that the field accepts in some states of the store.
  Json value(const Field& field) {
    static const std::map<std::string, std::vector<const char*>> kValues{
        {"run_id", {R"("r0")", R"("r1")"}},
        {"run_ids", {R"(["r0", "r1"])"}},
        {"run", {R"(["r0", "r1"])"}},
        {"experiment_id", {R"("e0")", R"("e1")"}},
        {"experiment_ids", {R"(["e0", "e1"])"}},
        {"name", {R"("m")"}},
        {"key", {R"("loss")", R"("k")"}},
        {"metric_key", {R"("loss")"}},
        {"value", {"0.5", R"("v")"}},
        {"version", {"1", R"("1")", R"("2")"}},
        {"alias", {R"("champion")"}},
        {"stage", {R"("Staging")"}},
        {"status", {R"("FINISHED")", R"("RUNNING")", R"("LOGGED_MODEL_READY")"}},
        {"source", {R"("s3://b/s")", R"("runs:/r0/f")"}},
        {"model_id", {R"("l0")"}},
        {"source_run_id", {R"("r0")"}},
        {"model_json", {R"("{}")"}},
        {"action", {R"("stop")"}},
        {"filter", {R"("")", R"("tags.k = 'v'")"}},
        {"order_by", {"[]"}},
        {"page_token", {R"("")"}},
        {"view_type", {R"("ALL")"}},
        {"run_view_type", {R"("ALL")"}},
        {"path", {R"("f")", R"("0/r0/artifacts")"}},
        {"series", {R"({"loss": [[3, 3, 0.5]], "n": [[1, 1, "NaN"]]})"}},
        {"metrics", {R"([{"key": "loss", "value": 1, "timestamp": 1, "step": 4}])"}},
        {"params", {R"([{"key": "k", "value": "v"}])"}},
        {"tags", {R"([{"key": "k", "value": "v"}])"}},
        {"datasets", {R"([{"dataset": {"name": "d", "digest": "g"}}])"}},
        {"models", {R"([{"model_id": "i", "step": 1}])"}}};
    const auto known = kValues.find(field.name);
    if (known != kValues.end()) {
      const auto& values = known->second;
      return Json::parse(values[choose_(static_cast<uint32_t>(values.size()))]);
    }
    if (field.type == "integer" || field.type == "number") return choose_(10);
    if (field.type == "flag") return choose_(2) == 0;
    if (field.type == "texts" || field.type == "list") return Json::array();
    return field.type == "object" ? Json::object() : Json("a" + std::to_string(choose_(1000)));
  }

  const Choose& choose_;
};

}  // namespace sinew::web
