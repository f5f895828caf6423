#include "web/fields.h"

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "base/joined.h"
#include "web/args.h"

namespace sinew::web {

std::vector<Field> parse_fields(const char* declaration) {
  std::vector<Field> fields;
  std::istringstream stream(declaration);
  for (std::string word; stream >> word;) {
    const size_t colon = word.find(':');
    SINEW_CHECK(colon != std::string::npos, word);
    Field field{word.substr(0, colon), word.substr(colon + 1), false};
    if (field.type.ends_with('!')) {
      field.required = true;
      field.type.pop_back();
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

namespace {

void check(const Json& given, const std::vector<Field>& fields, const char* where) {
  const auto known = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  };
  for (const auto& [name, value] : given.items()) {
    if (known(name)) continue;
    const std::string names = joined(fields, ", ", &Field::name);
    refuse_invalid("the " + std::string(where) + " has an unknown parameter '" + name + "'",
                   names.empty() ? "send none" : "known parameters: " + names);
  }
  for (const Field& field : fields) {
    const auto at = given.find(field.name);
    if (field.required && (at == given.end() || at->is_null())) {
      refuse_invalid("the " + std::string(where) + " lacks the required parameter '" + field.name + "'",
                     "send '" + field.name + "'");
    }
  }
}

}  // namespace

void check_fields(const Route& route, Call& call) {
  if (!std::string_view(route.path).starts_with("/api/v1/")) return;
  Json query = Json::object();
  for (const auto& [name, value] : call.request.query) query[name] = value;
  check(query, parse_fields(route.query), "query");
  if (std::string_view(route.body) == kFile || call.request.method == "GET" || call.request.method == "HEAD") return;
  call.body = std::make_shared<const Json>(parse_object(call.request.body));
  check(*call.body, parse_fields(route.body), "body");
}

}  // namespace sinew::web
