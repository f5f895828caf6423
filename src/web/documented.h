// For tests and fuzzing: compares responses with openapi_text(), the content of docs/reference/openapi.json.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/lower_case.h"
#include "http/http.h"
#include "web/context.h"
#include "web/web.h"

namespace sinew::web {

class Documented {
 public:
  // Returns the names of all operations of the document, such as "get /api/v1/runs/{run}".
  std::set<std::string> operations() const {
    std::set<std::string> names;
    for (const auto& [path, methods] : document_.at("paths").items()) {
      for (const auto& [method, operation] : methods.items()) names.insert(method + " " + path);
    }
    return names;
  }
  static std::string operation_of(const Route& route) { return lower_case(route.method) + " " + path_of(route); }

  // Returns in which way the response is not one that the document gives for the route: by its status or, if it is a
  // success in JSON, by its fields and their types. Returns "" if the document describes the response. A response with
  // a Source has no body yet, so only its status counts.
  std::string objection(const Route& route, const http::Response& response) const {
    const auto& responses = document_.at("paths").at(path_of(route)).at(lower_case(route.method)).at("responses");
    const std::string status = std::to_string(response.status);
    if (!responses.contains(status)) return "the status " + status + " is not documented";
    const auto content = responses[status].value("content", nlohmann::json::object());
    if (response.status >= 300 || response.source || !content.contains("application/json")) return "";
    return objection_to(content["application/json"]["schema"], response.body);
  }

 private:
  static std::string objection_to(const nlohmann::json& schema, const std::string& body) {
    const auto answer = nlohmann::json::parse(body, nullptr, false);
    if (!answer.is_object()) return "the response is no JSON object";
    for (const auto& name : schema.value("required", nlohmann::json::array())) {
      if (!answer.contains(name.get<std::string>())) return "the response lacks " + name.get<std::string>();
    }
    for (const auto& [name, value] : answer.items()) {
      if (!schema.at("properties").contains(name)) return "the field " + name + " is not documented";
      const std::string type = schema["properties"][name]["type"];
      if (!is(type, value)) return "the field " + name + " is no " + type;
    }
    return "";
  }
  static std::string path_of(const Route& route) {
    std::string path = route.path;
    for (size_t at; (at = path.find("*}")) != std::string::npos;) path.erase(at, 1);
    return path;
  }
  static bool is(const std::string& type, const nlohmann::json& value) {
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number() || value.is_string();  // "NaN"
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    return value.is_object();
  }

  const nlohmann::json document_ = nlohmann::json::parse(openapi_text());
};

}  // namespace sinew::web
