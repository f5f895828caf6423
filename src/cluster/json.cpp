#include "cluster/json.h"

#include "base/json_text.h"
#include "base/number_text.h"

namespace sinew::cluster {

std::optional<Json> parse_json(const std::string& text) {
  constexpr int kDeepest = 32;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) too_deep = true;
    return !too_deep;
  };
  Json value = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (too_deep || value.is_discarded()) return std::nullopt;
  return value;
}

std::string dump(const Json& value) {
  return dump_json(value);
}

namespace {

std::string quoted(const char* key) {
  return "\"" + std::string(key) + "\"";
}

}  // namespace

int64_t Fields::whole(const char* key, int64_t least, std::optional<int64_t> otherwise, int64_t most) {
  if (otherwise && !has(key)) return *otherwise;
  const auto value = whole_of(object_, key, least, most);
  if (!value) {
    const std::string range = most == kMostWhole ? std::to_string(least) + " or more"
                                                 : "from " + std::to_string(least) + " to " + std::to_string(most);
    blame(quoted(key) + (has(key) ? " must be" : " is missing:") + " a whole number, " + range);
  }
  return value.value_or(least);
}

double Fields::number(const char* key, double least, double most, std::optional<double> otherwise) {
  if (otherwise && !has(key)) return *otherwise;
  const auto value = number_of(object_, key, least, most);
  if (!value) {
    blame(quoted(key) + (has(key) ? " must be" : " is missing:") + " a number from " + rounded_text(least) + " to " +
          rounded_text(most));
  }
  return value.value_or(least);
}

bool Fields::truth(const char* key, bool otherwise) {
  if (!has(key)) return otherwise;
  const auto value = truth_of(object_, key);
  if (!value) blame(quoted(key) + " must be true or false");
  return value.value_or(otherwise);
}

std::string Fields::text(const char* key, size_t most_bytes, const char* otherwise) {
  if (otherwise != nullptr && !has(key)) return otherwise;
  const auto value = text_of(object_, key, most_bytes);
  if (!value) {
    blame(quoted(key) + (has(key) ? " must be" : " is missing:") + " a text of at most " + std::to_string(most_bytes) +
          " bytes");
  }
  return value.value_or("");
}

const Json* Fields::list(const char* key, size_t most) {
  const Json* value = member_of(object_, key);
  if (value == nullptr || (value->is_array() && value->size() <= most)) return value;
  blame(quoted(key) + " must be a list of at most " + std::to_string(most));
  return nullptr;
}

const Json* Fields::object(const char* key) {
  const Json* value = member_of(object_, key);
  if (value == nullptr || value->is_object()) return value;
  blame(quoted(key) + " must be an object");
  return nullptr;
}

}  // namespace sinew::cluster
