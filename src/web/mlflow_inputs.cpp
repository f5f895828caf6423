// Stores and returns the data sets and models that a run uses or produces. MLflow's client reads them with a strict
// parser: if one field has a wrong type, the client cannot read any list that contains the run. So only well-formed
// entries enter the record's body, and only well-formed entries leave it.
#include "base/cost_limit.h"
#include "base/json_text.h"
#include "web/mlflow.h"

namespace sinew::web {
namespace {

// Returns the field if it is present. Refuses a number in place of a text, because the client's parser refuses it.
std::optional<std::string> strict_text(const Args& args, const char* name, const std::string& where) {
  if (!args.has(name)) return std::nullopt;
  const Json& value = args.json().at(name);
  if (!value.is_string()) {
    refuse_invalid("'" + std::string(name) + "' of " + where + " is not a text", "send a text");
  }
  return value.get<std::string>();
}

std::string required_text(const Args& args, const char* name, const std::string& where) {
  const auto text = strict_text(args, name, where);
  if (!text || text->empty()) {
    refuse_invalid(where + " lacks '" + name + "', or it is empty", "send a text as '" + std::string(name) + "'");
  }
  return *text;
}

}  // namespace

Json dataset_input_of(const Args& given) {
  const std::string where = "an entry of 'datasets'";
  const auto at = given.json().find("dataset");
  if (at == given.json().end() || !at->is_object()) {
    refuse_invalid(where + " has no object 'dataset'", "send {\"dataset\": {\"name\": ..., \"digest\": ...}}");
  }
  const Args dataset(*at);
  const std::string of_dataset = "a data set";
  Json kept = Json::object();
  for (const char* key : {"name", "digest"}) kept[key] = required_text(dataset, key, of_dataset);
  for (const char* key : {"source_type", "source", "schema", "profile"}) {
    if (const auto text = strict_text(dataset, key, of_dataset)) kept[key] = *text;
  }
  Json tags = Json::array();
  for (const Args& tag : given.objects("tags")) {
    const std::string key = required_text(tag, "key", "a tag of " + of_dataset);
    tags.push_back({{"key", key}, {"value", strict_text(tag, "value", "a tag of " + of_dataset).value_or("")}});
  }
  return {{"tags", tags}, {"dataset", kept}};
}

Json model_input_of(const Args& given) {
  return {{"model_id", required_text(given, "model_id", "an entry of 'models'")}};
}

Json model_output_of(const Args& given) {
  Json kept = model_input_of(given);
  kept["step"] = given.integer("step", 0);
  return kept;
}

InputIdentity identity_of_input(const Json& entry) {
  const auto dataset = entry.find("dataset");
  if (dataset == entry.end()) return {dump_json(entry), ""};
  return {text_or_empty(*dataset, "name"), text_or_empty(*dataset, "digest")};
}

Json readable_inputs(const Json& body, const InputList& list) {
  Json readable = Json::array();
  const auto found = body.find(list.name);
  if (found == body.end() || !found->is_array()) return readable;
  for (const Json& entry : *found) {
    CostLimit::check_current();
    if (!entry.is_object()) continue;
    try {
      readable.push_back(list.parse(Args(entry)));
    } catch (const Refused&) {
      continue;  // an earlier version of the server stored this entry without a check
    }
  }
  return readable;
}

}  // namespace sinew::web
