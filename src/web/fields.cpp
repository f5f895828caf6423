#include "web/fields.h"

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "web/args.h"

namespace sinew::web {

std::vector<Field> fields_of(const char* words) {
  std::vector<Field> fields;
  std::istringstream stream(words);
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

void judge(const Json& given, const std::vector<Field>& fields, const char* where) {
  const auto known = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  };
  for (const auto& [name, value] : given.items()) {
    if (known(name)) continue;
    std::string names;
    for (const Field& field : fields) names += (names.empty() ? "" : ", ") + field.name;
    refuse_invalid("the " + std::string(where) + " has '" + name + "', which is not taken here",
                   names.empty() ? "nothing is" : "taken: " + names);
  }
  for (const Field& field : fields) {
    const auto at = given.find(field.name);
    if (field.required && (at == given.end() || at->is_null())) {
      refuse_invalid("the " + std::string(where) + " has no '" + field.name + "'", "send " + field.name);
    }
  }
}

}  // namespace

void judge_fields(const Route& route, Call& call) {
  if (!std::string_view(route.path).starts_with("/api/v1/")) return;
  Json query = Json::object();
  for (const auto& [name, value] : call.request.query) query[name] = value;
  judge(query, fields_of(route.query), "query");
  if (std::string_view(route.body) == kFile || call.request.method == "GET" || call.request.method == "HEAD") return;
  call.body = std::make_shared<const Json>(parse_object(call.request.body));
  judge(*call.body, fields_of(route.body), "body");
}

}  // namespace sinew::web
