// Reads and writes spaces and points as the JSON of docs/formats/ask-tell.md.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

using nlohmann::json;

constexpr const char* kExample = R"({"name":"lr","type":"float","low":1e-5,"high":0.1,"log":true})";

[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         const std::string& hint = std::string("for example ") + kExample) {
  throw Error("TUNE_BAD_PARAMETER", "parameter '" + name + "': " + what, hint);
}

double number(const json& entry, const char* key, const std::string& name) {
  const auto found = entry.find(key);
  if (found == entry.end()) refuse(name, std::string("it has no '") + key + "'");
  if (!found->is_number()) refuse(name, std::string("'") + key + "' is not a number");
  return found->get<double>();
}

Parameter::Kind kind_of(const json& entry, const std::string& name) {
  const std::string type = entry.value("type", json()).is_string() ? entry["type"].get<std::string>() : "";
  if (type == "float") return Parameter::Kind::real;
  if (type == "int") return Parameter::Kind::integer;
  if (type == "cat") return Parameter::Kind::categorical;
  if (type == "ordinal") return Parameter::Kind::ordinal;
  refuse(name, "'type' must be float, int, cat or ordinal");
}

// Returns the number that a Point holds for this JSON value, or nullopt if the parameter cannot have the value.
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
  if (!wanted.is_object()) refuse(name, "'if' must be an object", R"(for example "if":{"opt":["sgd"]})");
  for (const auto& [parent, values] : wanted.items()) {
    Condition condition{before.size(), {}};
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].name == parent) condition.parent = i;
    }
    if (condition.parent == before.size()) {
      refuse(name, "'if' names '" + parent + "', which is not declared before it",
             "declare parents before their children");
    }
    for (const json& value : values.is_array() ? values : json::array({values})) {
      const auto number = encoded(before[condition.parent], value);
      if (!number) refuse(name, "'if' lists a value that '" + parent + "' cannot have", "list values of " + parent);
      condition.allowed.push_back(*number);
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

Parameter read_parameter(const json& entry, const std::vector<Parameter>& before) {
  const std::string place = "parameter " + std::to_string(before.size() + 1);
  if (!entry.is_object())
    throw Error("TUNE_BAD_PARAMETER", place + " of the search space must be an object",
                std::string("for example ") + kExample);
  if (!entry.contains("name") || !entry["name"].is_string())
    throw Error("TUNE_BAD_PARAMETER", place + " has no name", std::string("for example ") + kExample);
  Parameter parameter;
  parameter.name = entry["name"].get<std::string>();
  parameter.kind = kind_of(entry, parameter.name);
  if (parameter.numeric()) {
    parameter.low = number(entry, "low", parameter.name);
    parameter.high = number(entry, "high", parameter.name);
    if (entry.contains("step") && !entry["step"].is_null()) parameter.step = number(entry, "step", parameter.name);
    const json log = entry.value("log", json(false));
    if (!log.is_boolean()) refuse(parameter.name, "'log' must be true or false");
    parameter.log = log.get<bool>();
  } else {
    const json choices = entry.value("choices", json());
    if (!choices.is_array())
      refuse(parameter.name, "'choices' must be a list", R"(for example "choices":["relu","tanh"])");
    for (const json& choice : choices) {
      if (!choice.is_primitive()) refuse(parameter.name, "a choice must be a string, a number, true, false or null");
      parameter.choices.push_back(choice.dump());
    }
  }
  if (entry.contains("if")) parameter.conditions = read_conditions(entry["if"], before, parameter.name);
  return parameter;
}

json parsed(std::string_view text, const char* what, ErrorCode code) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded())
    throw Error(code, std::string(what) + " must be JSON", std::string("for example ") + kExample);
  return value;
}

void append_number(std::string& out, const Parameter& parameter, double value) {
  char digits[32];
  const bool whole = parameter.kind == Parameter::Kind::integer;
  const auto end = whole ? std::to_chars(digits, std::end(digits), static_cast<int64_t>(value)).ptr
                         : std::to_chars(digits, std::end(digits), value).ptr;
  const std::string_view text(digits, end);
  out += text;
  if (!whole && text.find_first_of(".e") == std::string_view::npos)
    out += ".0";  // keeps a real number apart from an integer
}

}  // namespace

Space read_space(std::string_view text, std::vector<Comparison> constraints) {
  const json list = parsed(text, "the search space", "TUNE_BAD_SPACE");
  if (!list.is_array())
    throw Error("TUNE_BAD_SPACE", "the search space must be a list", std::string("for example [") + kExample + "]");
  std::vector<Parameter> parameters;
  for (const json& entry : list) parameters.push_back(read_parameter(entry, parameters));
  return Space(std::move(parameters), std::move(constraints));
}

Point read_point(const Space& space, std::string_view text) {
  const json values = parsed(text, "the params", "TUNE_BAD_POINT");
  if (!values.is_object())
    throw Error("TUNE_BAD_POINT", "the params must be an object", R"(for example {"lr":0.01,"opt":"sgd"})");
  Point point(space.size(), kInactive);
  size_t known = 0;
  for (size_t i = 0; i < space.size(); ++i) {
    const auto value = values.find(space[i].name);
    if (value == values.end()) continue;
    ++known;
    const auto number = encoded(space[i], *value);
    if (!number)
      throw Error("TUNE_BAD_POINT", "parameter '" + space[i].name + "' cannot have the value " + value->dump(),
                  "use a value of the search space");
    point[i] = *number;
    if (space.cells(i) > 0 && space[i].kind == Parameter::Kind::real) {  // reads 0.1 + 0.2 as the 0.3 of the space
      const double nearest = space.value_at(i, space.unit_at(i, *number));
      if (std::abs(nearest - *number) <= 1e-9 * space[i].step) point[i] = nearest;
    }
  }
  if (known < values.size()) {
    for (const auto& [name, value] : values.items()) {
      bool found = false;
      for (size_t i = 0; i < space.size(); ++i) found |= space[i].name == name;
      if (!found)
        throw Error("TUNE_BAD_POINT", "the search space has no parameter '" + name + "'",
                    "use the names that the search space declares");
    }
  }
  if (const auto problem = space.problem_of(point))
    throw Error("TUNE_BAD_POINT", "the params are not a point of the search space: " + *problem,
                "give each active parameter a value within its range");
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
