// Implements json_schema and options(), which are made from the option table.
#include <nlohmann/json.hpp>

#include "spec/amounts.h"
#include "spec/options.h"
#include "spec/search.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

using Json = nlohmann::ordered_json;

Json whole_schema(const Option& option) {
  const Type& type = option.type;
  if (!type.choices.empty()) {
    Json numbers = Json::array();
    for (const std::string& choice : type.choices) numbers.push_back(std::stoll(choice));
    return {{"type", "integer"}, {"enum", numbers}};
  }
  Json schema = {{"type", "integer"}, {"minimum", static_cast<int64_t>(type.range.low)}};
  if (type.range.high >= 18446744073709551615.0) {
    schema["maximum"] = ~0ULL;
  } else {
    schema["maximum"] = static_cast<int64_t>(type.range.high);
  }
  if (option.can_be_auto()) return {{"anyOf", {schema, {{"const", "auto"}}}}};
  if (type.zero) return {{"anyOf", {schema, {{"const", 0}}}}};
  return schema;
}

Json number_schema(const Range& range) {
  Json schema = {{"type", "number"}};
  schema[range.open_low ? "exclusiveMinimum" : "minimum"] = range.low;
  schema[range.open_high ? "exclusiveMaximum" : "maximum"] = range.high;
  return schema;
}

Json string_schema(const std::string& pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

Json search_schema();

Json scalar_schema(const std::string& pattern) {
  return {{"anyOf",
           {{{"type", "number"}},
            {{"type", "boolean"}},
            {{"type", "string"}, {"anyOf", {{{"maxLength", 0}}, {{"pattern", pattern}}}}}}}};
}

Json values_schema() {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"minProperties", 1},
          {"patternProperties", {{variable_name_pattern(), scalar_schema(text_pattern())}}}};
}

Json item_schema(const Option& option) {
  const Type& type = option.type;
  switch (type.kind) {
    case Kind::text:
    case Kind::comparison:
    case Kind::path: return string_schema(text_pattern());
    case Kind::word: return scalar_schema(word_pattern());
    case Kind::values: return values_schema();
    case Kind::name:
      return {{"type", "string"}, {"allOf", {{{"pattern", text_pattern()}}, {{"pattern", name_pattern()}}}}};
    case Kind::metric:
      if (type.auto_metric) return {{"anyOf", {string_schema(metric_pattern()), {{"const", "auto"}}}}};
      return string_schema(metric_pattern());
    case Kind::choice: return {{"type", "string"}, {"enum", type.choices}};
    case Kind::flag: return {{"type", "boolean"}};
    case Kind::whole: return whole_schema(option);
    case Kind::number: return number_schema(type.range);
    case Kind::duration: return string_schema(duration_pattern(type.units, type.zero));
    case Kind::interval:
      return {{"anyOf", {string_schema(duration_pattern(type.units, type.zero)), {{"const", "never"}}}}};
    case Kind::bytes:
      return {
          {"anyOf",
           {{{"type", "integer"}, {"minimum", 1}, {"maximum", 999999999999999999}}, string_schema(bytes_pattern())}}};
    case Kind::time: return string_schema(duration_pattern(type.units, false));
    case Kind::objective: return string_schema(objective_pattern());
    case Kind::search: return search_schema();
  }
  return {};
}

Json default_value(const Option& option) {
  const std::string text = value_text(option, Job{});
  const Kind kind = option.type.kind;
  const bool plain_number = (kind == Kind::whole || kind == Kind::number || kind == Kind::flag) && text != "auto";
  return plain_number ? Json::parse(text) : Json(text);
}

Json option_schema(const Option& option) {
  Json schema = item_schema(option);
  if (option.is_list()) {
    schema = {
        {"type", "array"}, {"items", schema}, {"minItems", option.type.min_items}, {"maxItems", option.type.max_items}};
  }
  schema["description"] = option.help + (option.unset.empty() ? "" : "; not given: " + option.unset);
  if (is_set(option, Job{})) schema["default"] = default_value(option);
  return schema;
}

// Accepts a list of the option's values, or a range if the option is a single number.
Json parameter_schema(const Option& option) {
  Json value = option_schema(option);
  value.erase("description");
  value.erase("default");
  const Json condition = {{"type", "object"}, {"minProperties", 1}};
  const Json choices = {{"type", "array"}, {"items", value}, {"minItems", 1}, {"uniqueItems", true}};
  const auto form = [&](Json properties, std::vector<std::string> required) {
    properties["if"] = condition;
    return Json{
        {"type", "object"}, {"additionalProperties", false}, {"properties", properties}, {"required", required}};
  };
  Json forms = {choices, form({{"choices", choices}, {"ordered", {{"type", "boolean"}}}}, {"choices"})};
  if (takes_range(option)) {
    const bool whole = option.type.kind == Kind::whole;
    const Json step = {{"type", whole ? "integer" : "number"}, {"exclusiveMinimum", 0}};
    const Json end = {{"allOf", {value, {{"type", "number"}}}}};
    forms.push_back(
        form({{"low", end}, {"high", end}, {"log", {{"type", "boolean"}}}, {"step", step}}, {"low", "high"}));
  }
  return {{"anyOf", forms}};
}

// Accepts, for a parameter of a command (params.lr), a list of any values or a range of numbers.
Json command_parameter_schema() {
  const Json end = {{"type", "number"}};
  const Json condition = {{"type", "object"}, {"minProperties", 1}};
  const Json choices = {
      {"type", "array"}, {"items", scalar_schema(text_pattern())}, {"minItems", 1}, {"uniqueItems", true}};
  const auto form = [](Json properties, std::vector<std::string> required) {
    return Json{
        {"type", "object"}, {"additionalProperties", false}, {"properties", properties}, {"required", required}};
  };
  const Json flag = {{"type", "boolean"}}, step = {{"type", "number"}, {"exclusiveMinimum", 0}};
  return {{"anyOf",
           {choices, form({{"choices", choices}, {"ordered", flag}, {"if", condition}}, {"choices"}),
            form({{"low", end}, {"high", end}, {"log", flag}, {"step", step}, {"if", condition}}, {"low", "high"})}}};
}

Json search_schema() {
  Json properties = Json::object();
  for (const Option& option : option_table()) {
    if (is_searchable(option)) properties[option.key] = parameter_schema(option);
  }
  return {{"type", "object"},
          {"additionalProperties", false},
          {"minProperties", 1},
          {"properties", properties},
          {"patternProperties", {{"^params\\.[A-Za-z_][A-Za-z0-9_]{0,63}$", command_parameter_schema()}}}};
}

Json section_schema(const std::string& section) {
  Json properties = Json::object(), not_both = Json::object();
  for (const std::string& leaf : keys_below(section)) {
    const std::string key = section.empty() ? leaf : section + "." + leaf;
    const Option* option = find_option(key);
    properties[leaf] = option != nullptr ? option_schema(*option) : section_schema(key);
    if (option == nullptr || option->alias.empty()) continue;
    properties[option->alias] = option_schema(*option);
    properties[option->alias]["description"] = "another name of " + leaf;
    not_both[option->alias] = {{"not", {{"required", Json::array({leaf})}}}};
  }
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!not_both.empty()) schema["dependentSchemas"] = not_both;
  if (section == "data") schema["required"] = {"train"};
  if (const Section* found = find_section(section)) schema["description"] = found->help;
  if (const Option* short_form = short_form_of(section)) {
    return {{"description", find_section(section)->help}, {"anyOf", {item_schema(*short_form), schema}}};
  }
  return schema;
}

}  // namespace

std::string json_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Sinew job file"}};
  schema.update(section_schema(""));
  schema["if"] = {{"required", {"command"}}};
  schema["else"] = {{"required", {"data"}}};
  return schema.dump(2) + "\n";
}

std::vector<OptionInfo> options() {
  std::vector<OptionInfo> list;
  for (const Option& option : option_table()) {
    list.push_back({option.key, expectation(option), value_text(option, Job{}), option.help, option.type.choices});
  }
  return list;
}

}  // namespace sinew::spec
