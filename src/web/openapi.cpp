// The OpenAPI 3.1 description (https://spec.openapis.org/oas/v3.1.0), generated from the array of routes alone.
#include <sstream>

#include "web/fields.h"

namespace sinew::web {
namespace {

Json schema_of(const std::string& type) {
  if (type == "text") return {{"type", "string"}};
  if (type == "texts") return {{"type", "array"}, {"items", {{"type", "string"}}}};
  if (type == "flag") return {{"type", "boolean"}};
  return {{"type", type}};
}

// OpenAPI has no "{path*}"; it becomes "{path}", and the parameter's description says that it may contain slashes.
std::string path_of(const Route& route) {
  std::string path = route.path;
  for (size_t at; (at = path.find("*}")) != std::string::npos;) path.erase(at, 1);
  return path;
}

Json parameters_of(const Route& route) {
  Json list = Json::array();
  const std::string path = route.path;
  for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    std::string name = path.substr(at + 1, path.find('}', at) - at - 1);
    const bool rest = name.ends_with('*');
    if (rest) name.pop_back();
    Json parameter{{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}};
    if (rest) parameter["description"] = "the rest of the path, with its slashes";
    list.push_back(std::move(parameter));
  }
  for (const Field& field : parse_fields(route.query)) {
    Json parameter{
        {"name", field.name}, {"in", "query"}, {"required", field.required}, {"schema", schema_of(field.type)}};
    if (field.type == "texts") parameter["explode"] = true;
    list.push_back(std::move(parameter));
  }
  return list;
}

Json body_of(const Route& route) {
  if (std::string_view(route.body) == kFile) {
    return {{"required", true},
            {"content", {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}}};
  }
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : parse_fields(route.body)) {
    properties[field.name] = schema_of(field.type);
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  return {{"required", !required.empty()}, {"content", {{"application/json", {{"schema", schema}}}}}};
}

Json operation_of(const Route& route) {
  const bool mlflow = std::string_view(route.path).find("/mlflow") != std::string_view::npos;
  Json operation{{"summary", route.help}, {"tags", {mlflow ? "mlflow" : "sinew"}}, {"x-role", to_string(route.role)}};
  if (mlflow) operation["description"] = "As in MLflow's REST API; also available under /ajax-api.";
  if (route.role == Role::kNone) operation["security"] = Json::array();
  Json parameters = parameters_of(route);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (route.body[0] != '\0') operation["requestBody"] = body_of(route);
  operation["responses"] = {
      {"200", {{"description", "success"}}},
      {"default",
       {{"description", "an error, with its reason"},
        {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}}}};
  return operation;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c | 0x20);
  return text;
}

}  // namespace

std::string openapi_text() {
  Json paths = Json::object();
  for (const Route& route : routes()) paths[path_of(route)][lower(route.method)] = operation_of(route);
  const Json error{{"type", "object"},
                   {"required", {"error", "code", "hint"}},
                   {"properties",
                    {{"error", {{"type", "string"}, {"description", "what is wrong, as a sentence"}}},
                     {"code", {{"type", "string"}, {"description", "the stable code of the error"}}},
                     {"hint", {{"type", "string"}, {"description", "what to do about it"}}},
                     {"error_code", {{"type", "string"}, {"description", "for MLflow's client"}}},
                     {"message", {{"type", "string"}, {"description", "for MLflow's client"}}}}}};
  const Json all{
      {"openapi", "3.1.0"},
      {"info", {{"title", "sinew server"}, {"version", "1"}, {"license", {{"name", "Apache 2.0"}}}}},
      {"security", {{{"token", Json::array()}}, {{"password", Json::array()}}}},
      {"paths", paths},
      {"components",
       {{"securitySchemes",
         {{"token", {{"type", "http"}, {"scheme", "bearer"}}},
          {"password", {{"type", "http"}, {"scheme", "basic"}, {"description", "the token is the password"}}}}},
        {"schemas", {{"Error", error}}}}}};
  return all.dump(1) + "\n";
}

}  // namespace sinew::web
