// Writes the OpenAPI 3.1 description (https://spec.openapis.org/oas/v3.1.0), from the tables of routes and their
// fields.
#include <algorithm>
#include <sstream>
#include <vector>

#include "base/lower_case.h"
#include "web/api_routes.h"
#include "web/fields.h"
#include "web/route_fields.h"

namespace sinew::web {
namespace {

Json schema_of(const std::string& type) {
  if (type == "text") return {{"type", "string"}};
  if (type == "texts") return {{"type", "array"}, {"items", {{"type", "string"}}}};
  if (type == "list") return {{"type", "array"}};
  if (type == "flag") return {{"type", "boolean"}};
  return {{"type", type}};
}

// OpenAPI has no "{path*}". It becomes "{path}", and the parameter's description says that it may contain slashes.
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
  for (const Field& field : parse_fields(query_fields_of(route))) {
    Json parameter{
        {"name", field.name}, {"in", "query"}, {"required", field.required}, {"schema", schema_of(field.type)}};
    if (field.type == "texts") parameter["explode"] = true;
    list.push_back(std::move(parameter));
  }
  return list;
}

Json object_schema(const char* declaration) {
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : parse_fields(declaration)) {
    properties[field.name] = schema_of(field.type);
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

Json body_of(const Route& route) {
  if (std::string_view(route.body) == kFile) {
    return {{"required", true},
            {"content", {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}}};
  }
  const Json schema = object_schema(body_fields_of(route));
  return {{"required", schema.contains("required")}, {"content", {{"application/json", {{"schema", schema}}}}}};
}

// Returns whether the route sends content that a client may ask for in part, or only if it has changed.
bool sends_content(const Route& route) {
  const char* holds = fields_of(route).holds;
  return holds != nullptr && holds == std::string_view("application/octet-stream");
}

// Returns the error responses that a route may give, by status.
Json error_responses(const Route& route) {
  std::vector<int> statuses{400, 503};
  if (route.role != Role::kNone) statuses.insert(statuses.end(), {401, 403, 404, 408, 409, 429, 500, 504, 507});
  if (route.body[0] != '\0' || route.method != std::string_view("GET")) statuses.push_back(413);
  if (sends_content(route)) statuses.push_back(416);
  if (route.help == std::string_view("not offered") || std::string_view(route.help).ends_with("not offered"))
    statuses = {401, 403, 413, 429, 501, 503};
  std::sort(statuses.begin(), statuses.end());
  Json responses = Json::object();
  for (const int status : statuses) {
    const std::string name = std::to_string(status);
    responses[name] = {{"$ref", "#/components/responses/" + name}};
  }
  return responses;
}

Json success_of(const Route& route) {
  const RouteFields& fields = fields_of(route);
  Json success{{"description", "success"}};
  if (fields.holds != nullptr) {
    success["content"] = {{fields.holds, {{"schema", {{"type", "string"}}}}}};
  } else {
    success["content"] = {{"application/json", {{"schema", object_schema(fields.gives)}}}};
  }
  return success;
}

// Returns what each error status means, with its codes.
Json all_error_responses() {
  const std::pair<int, const char*> meanings[] = {
      {400,
       "a parameter, the path or the body is invalid, or the request needs too much memory: API_INVALID_VALUE, "
       "API_ALREADY_EXISTS, API_SOURCE_REFUSED, REQUEST_TOO_LARGE, HTTP_BAD_REQUEST"},
      {401, "the request has no valid token: API_NO_TOKEN"},
      {403,
       "the token's role or scope does not allow the request, the record belongs to another token, or a page of "
       "another site sent the request: API_FORBIDDEN, API_OUT_OF_SCOPE, API_NOT_OWNER"},
      {404,
       "there is no such route, record or file: API_NO_ROUTE, API_NOT_FOUND, MODEL_NOT_FOUND, "
       "MODEL_VERSION_NOT_FOUND, MODEL_ALIAS_NOT_FOUND, RUN_NOT_FOUND, HTTP_NO_FILE, DISK_NO_FILE"},
      {408, "the body did not arrive in time: HTTP_REQUEST_TIMEOUT"},
      {409,
       "the current state does not allow the request: API_CONFLICT, API_LEASE_LOST, API_UNREACHABLE_RUN, "
       "API_VERSION_WITHOUT_FILES, or a code of the model, run or file in question"},
      {413,
       "the body is too large, or the token has used up its uploads of this day: HTTP_BODY_TOO_LARGE, "
       "API_UPLOAD_TOO_LARGE, API_UPLOAD_QUOTA"},
      {416, "the range lies outside the file: HTTP_BAD_RANGE"},
      {429,
       "the caller sends too many requests, or too many of them wait; see Retry-After: API_RATE_LIMITED, "
       "API_CALLER_BUSY"},
      {500, "the server or its store failed: API_INTERNAL_ERROR, STORE_DAMAGED, STORE_DISK_ERROR, STORE_NOT_WRITABLE"},
      {501, "the server does not offer this route of MLflow: API_NOT_OFFERED"},
      {503,
       "try again: STORE_BUSY, STORE_CONNECTION_LOST, STORE_OUTCOME_UNKNOWN, STORE_REPLACED, API_STORE_AWAY, "
       "API_OVERLOADED, API_BUSY_RECORD, ARTIFACTS_BUSY, MODEL_BUSY, REQUEST_TOO_LONG, HTTP_OVERLOADED"},
      {504, "the server had no answer in time: HTTP_ANSWER_TIMEOUT"},
      {507, "a disk is full: STORE_NO_SPACE, DISK_FULL"}};
  Json responses = Json::object();
  for (const auto& [status, meaning] : meanings) {
    responses[std::to_string(status)] = {
        {"description", meaning},
        {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  }
  return responses;
}

Json operation_of(const Route& route) {
  const bool mlflow = std::string_view(route.path).find("/mlflow") != std::string_view::npos;
  Json operation{{"summary", route.help}, {"tags", {mlflow ? "mlflow" : "sinew"}}, {"x-role", to_string(route.role)}};
  if (mlflow) operation["description"] = "As in MLflow's REST API; also available under /ajax-api.";
  if (route.role == Role::kNone) operation["security"] = Json::array();
  Json parameters = parameters_of(route);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (body_fields_of(route)[0] != '\0') operation["requestBody"] = body_of(route);
  const char* success = route.handle == api_put_run_file ? "201" : "200";
  operation["responses"] = {{success, success_of(route)}};
  if (sends_content(route)) {
    operation["responses"]["206"] = success_of(route);
    operation["responses"]["206"]["description"] = "the part that the header Range names";
    operation["responses"]["304"] = {{"description", "the content still has the ETag that If-None-Match names"}};
  }
  operation["responses"].update(error_responses(route));
  return operation;
}

}  // namespace

std::string openapi_text() {
  Json paths = Json::object();
  for (const Route& route : routes()) paths[path_of(route)][lower_case(route.method)] = operation_of(route);
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
        {"responses", all_error_responses()},
        {"schemas", {{"Error", error}}}}}};
  return all.dump(1) + "\n";
}

}  // namespace sinew::web
