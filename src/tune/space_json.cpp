// Spaces and points as JSON text, as docs/formats/ask-tell.md describes them.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

using nlohmann::json;

constexpr const char* kEntry = R"({"name":"lr","type":"float","low":1e-5,"high":0.1,"log":true})";

[[noreturn]] void refuse(const std::string& name, const std::string& what, const std::string& hint = kEntry) {
  throw Error("parameter '" + name + "': " + what, hint);
}

double number(const json& entry, const char* key, const std::string& name) {
  const auto found = entry.find(key);
  if (found == entry.end()) refuse(name, std::string("has no '") + key + "'");
  if (!found->is_number()) refuse(name, std::string("'") + key + "' is not a number");
  return found->get<double>();
}

Parameter::Kind kind_of(const json& entry, const std::string& name) {
  const std::string type = entry.value("type", json()).is_string() ? entry["type"].get<std::string>() : "";
  if (type == "float") return Parameter::Kind::real;
  if (type == "int") return Parameter::Kind::integer;
  if (type == "cat") return Parameter::Kind::categorical;
  if (type == "ordinal") return Parameter::Kind::ordinal;
  refuse(name, "'type' is none of float, int, cat, ordinal");
}

// The number of a value as a point has it; none: the parameter can not have it.
std::optional<double> encoded(const Parameter& parameter, const json& value) {
  if (parameter.numeric()) {
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }
  const std::string text = value.is_primitive() ? value.dump() : "";
  for (size_t i = 0; i < parameter.choices.size(); ++i) {
    if (parameter.choices[i] == text) return static_cast<double>(i);
  }
  return std::nullopt;
}

std::vector<Condition> read_conditions(const json& wanted, const std::vector<Parameter>& before,
                                       const std::string& name) {
  std::vector<Condition> conditions;
  if (!wanted.is_object()) refuse(name, "'if' is not an object", R"("if":{"opt":["sgd"]})");
  for (const auto& [parent, values] : wanted.items()) {
    Condition condition{before.size(), {}};
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].name == parent) condition.parent = i;
    }
    if (condition.parent == before.size()) {
      refuse(name, "'if' names '" + parent + "', which does not stand before it", "list parents before children");
    }
    for (const json& value : values.is_array() ? values : json::array({values})) {
      const auto number = encoded(before[condition.parent], value);
      if (!number) refuse(name, "'if' asks for a value '" + parent + "' can not have", "one of its values");
      condition.allowed.push_back(*number);
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

Parameter read_parameter(const json& entry, const std::vector<Parameter>& before) {
  const std::string place = "parameter " + std::to_string(before.size() + 1);
  if (!entry.is_object()) throw Error(place + " of the space is not an object", kEntry);
  if (!entry.contains("name") || !entry["name"].is_string()) throw Error(place + " has no name", kEntry);
  Parameter parameter;
  parameter.name = entry["name"].get<std::string>();
  parameter.kind = kind_of(entry, parameter.name);
  if (parameter.numeric()) {
    parameter.low = number(entry, "low", parameter.name);
    parameter.high = number(entry, "high", parameter.name);
    if (entry.contains("step") && !entry["step"].is_null()) parameter.step = number(entry, "step", parameter.name);
    const json log = entry.value("log", json(false));
    if (!log.is_boolean()) refuse(parameter.name, "'log' is neither true nor false");
    parameter.log = log.get<bool>();
  } else {
    const json choices = entry.value("choices", json());
    if (!choices.is_array()) refuse(parameter.name, "'choices' is not a list", R"("choices":["relu","tanh"])");
    for (const json& choice : choices) {
      if (!choice.is_primitive()) refuse(parameter.name, "a choice is neither text, number, true, false nor null");
      parameter.choices.push_back(choice.dump());
    }
  }
  if (entry.contains("if")) parameter.conditions = read_conditions(entry["if"], before, parameter.name);
  return parameter;
}

json parsed(std::string_view text, const char* what) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) throw Error(std::string(what) + " is not JSON", kEntry);
  return value;
}

void append_number(std::string& out, const Parameter& parameter, double value) {
  char digits[32];
  const bool whole = parameter.kind == Parameter::Kind::integer;
  const auto end = whole ? std::to_chars(digits, std::end(digits), static_cast<int64_t>(value)).ptr
                         : std::to_chars(digits, std::end(digits), value).ptr;
  const std::string_view text(digits, end);
  out += text;
  if (!whole && text.find_first_of(".e") == std::string_view::npos) out += ".0";  // readers tell 5.0 from 5
}

}  // namespace

Space read_space(std::string_view text, std::vector<Comparison> constraints) {
  const json list = parsed(text, "the space");
  if (!list.is_array()) throw Error("the space is not a list", std::string("[") + kEntry + "]");
  std::vector<Parameter> parameters;
  for (const json& entry : list) parameters.push_back(read_parameter(entry, parameters));
  return Space(std::move(parameters), std::move(constraints));
}

Point read_point(const Space& space, std::string_view text) {
  const json values = parsed(text, "the params");
  if (!values.is_object()) throw Error("the params are not an object", R"({"lr":0.01,"opt":"sgd"})");
  Point point(space.size(), kInactive);
  size_t known = 0;
  for (size_t i = 0; i < space.size(); ++i) {
    const auto value = values.find(space[i].name);
    if (value == values.end()) continue;
    ++known;
    const auto number = encoded(space[i], *value);
    if (!number) refuse(space[i].name, value->dump() + " is none of its values", "a value of the space");
    point[i] = *number;
    if (space.cells(i) > 0 && space[i].kind == Parameter::Kind::real) {  // 0.1 + 0.2 is the lattice's 0.3
      const double nearest = space.value_at(i, space.unit_at(i, *number));
      if (std::abs(nearest - *number) <= 1e-9 * space[i].step) point[i] = nearest;
    }
  }
  if (known < values.size()) {
    for (const auto& [name, value] : values.items()) {
      bool found = false;
      for (size_t i = 0; i < space.size(); ++i) found |= space[i].name == name;
      if (!found) refuse(name, "is not in the space", "the space's names");
    }
  }
  if (const auto problem = space.problem_of(point))
    throw Error("not a point of the space: " + *problem, "its active parameters, within their ranges");
  return point;
}

std::string write_point(const Space& space, const Point& point) {
  std::string out = "{";
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    if (out.size() > 1) out += ',';
    out += json(space[i].name).dump();
    out += ':';
    if (space[i].numeric()) {
      append_number(out, space[i], point[i]);
    } else {
      out += space[i].choices[static_cast<size_t>(point[i])];
    }
  }
  return out + "}";
}

}  // namespace sinew::tune
