#include "spec/search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "spec/amounts.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

using Form = SearchParameter::Kind;

const std::vector<std::string> kKeys = {"low", "high", "log", "step", "choices", "ordered", "if"};

// The node as one line of a job file.
std::string flow_text(const Node& node) {
  if (node.kind == Node::Kind::list) {
    std::string text;
    for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
    return "[" + text + "]";
  }
  return is_string_node(node) ? quoted_text(node.text) : node.text;
}

// Reads one parameter of the map.
class ParameterReader {
 public:
  ParameterReader(const Option& option, const Environment& environment, const std::vector<SearchParameter>& before,
                  std::vector<Finding>& findings)
      : option_(option), environment_(environment), before_(before), findings_(findings) {
    parameter_.key = option.key;
  }

  std::optional<SearchParameter> read(const Node& node) {
    if (node.broken) return std::nullopt;
    bool good = true;
    if (node.kind == Node::Kind::list) {
      good = read_choices(node);
    } else if (node.kind == Node::Kind::map) {
      good = read_map(node);
    } else {
      good = say(node.place, "SPEC_BAD_SEARCH",
                 "tune.search: " + option_.key + " needs a range or a list, got " + described(node), form());
    }
    return good ? std::optional(std::move(parameter_)) : std::nullopt;
  }

 private:
  bool say(Place place, ErrorCode code, std::string what, std::string hint) {
    findings_.push_back({place, code, std::move(what), std::move(hint)});
    return false;
  }

  std::string form() const {
    const std::string value = example(option_);
    const std::string list = "'" + option_.key + ": [" + value + ", ...]'";
    if (!takes_range(option_)) return "write a list of values: " + list;
    return "write '" + option_.key + ": {low: ..., high: ...}', or a list of values: " + list;
  }

  bool read_map(const Node& node) {
    bool good = true;
    for (const Entry& entry : node.entries) {
      if (std::ranges::find(kKeys, entry.key) != kKeys.end()) continue;
      const std::string meant = did_you_mean(entry.key, kKeys);
      meant_.insert(meant);
      good = say(entry.place, "SPEC_UNKNOWN_KEY", "unknown key " + shown(entry.key) + " in tune.search: " + option_.key,
                 meant.empty() ? "keys here: " + listed(kKeys) : "did you mean '" + meant + "'?");
    }
    const Node* choices = find(node, "choices");
    good = (choices != nullptr ? read_listed(node, *choices) : read_range(node)) && good;
    if (const Node* condition = find(node, "if")) good = read_condition(*condition) && good;
    return good;
  }

  static const Node* find(const Node& node, std::string_view key) { return const_cast<Node&>(node).find(key); }

  bool read_flag(const Node& node, const char* key, bool& value) {
    const Node* flag = find(node, key);
    if (flag == nullptr) return true;
    if (flag->broken) return false;
    if (!is_true_or_false(*flag))
      return say(flag->place, "SPEC_WRONG_TYPE", std::string(key) + " needs true or false, got " + described(*flag),
                 "write " + std::string(key) + ": true");
    value = flag->text == "true";
    return true;
  }

  bool refuse(const Node& node, std::initializer_list<const char*> keys, const std::string& why) {
    bool good = true;
    for (const char* key : keys) {
      if (const Node* found = find(node, key))
        good = say(found->place, "SPEC_BAD_SEARCH", std::string(key) + why, "delete it");
    }
    return good;
  }

  // ---- a list of values

  bool read_listed(const Node& node, const Node& choices) {
    bool good = refuse(node, {"low", "high", "log", "step"}, " cannot be given together with choices");
    good = read_flag(node, "ordered", parameter_.ordered) && good;
    return read_choices(choices) && good;
  }

  bool read_choices(const Node& node) {
    parameter_.kind = Form::choice;
    if (node.broken) return false;
    if (node.kind != Node::Kind::list)
      return say(node.place, "SPEC_BAD_SEARCH", "choices needs a list, got " + described(node), form());
    if (node.items.empty())
      return say(node.place, "SPEC_BAD_SEARCH", "tune.search: " + option_.key + " has an empty list", form());
    bool good = true;
    std::set<std::string> seen;
    for (const Node& item : node.items) {
      good = fits(item) && good;
      const std::string text = flow_text(item);
      if (!seen.insert(text).second)
        good = say(item.place, "SPEC_BAD_SEARCH", text + " is listed twice", "keep one of them");
      parameter_.choices.push_back(text);
    }
    return good;
  }

  // Checks the value by the rules of its option. A parameter of a command takes any single value.
  bool fits(const Node& value) {
    Job scratch;
    if (option_.key.starts_with(kParams)) {
      Node entry;
      entry.kind = Node::Kind::map;
      entry.place = value.place;
      entry.entries.push_back({option_.key.substr(kParams.size()), value.place, value});
      return read_value(*find_option("params"), entry, environment_, scratch, findings_);
    }
    return read_value(option_, value, environment_, scratch, findings_);
  }

  // ---- a range

  bool read_range(const Node& node) {
    parameter_.kind = option_.type.kind == Kind::whole ? Form::whole : Form::real;
    if (!takes_range(option_))
      return say(node.place, "SPEC_BAD_SEARCH",
                 "tune.search: " + option_.key + " cannot have a range: it takes " + expectation(option_), form());
    bool good = refuse(node, {"ordered"}, " belongs to choices: a range is always ordered");
    good = read_flag(node, "log", parameter_.log) && good;
    good = read_end(node, "low", parameter_.low) && good;
    good = read_end(node, "high", parameter_.high) && good;
    good = read_step(node) && good;
    return good && check_range(node.place);
  }

  bool read_end(const Node& node, const char* key, double& value) {
    const Node* end = find(node, key);
    if (end == nullptr && meant_.contains(key)) return false;  // the unknown key is already reported
    if (end == nullptr)
      return say(node.place, "SPEC_BAD_SEARCH", "tune.search: " + option_.key + " has no " + key, form());
    if (!fits(*end)) return false;
    const auto number = is_number_node(*end) ? parse_number(end->text) : std::nullopt;
    if (!number)
      return say(end->place, "SPEC_WRONG_TYPE", std::string(key) + " must be a number, got " + described(*end), form());
    value = *number;
    return true;
  }

  bool read_step(const Node& node) {
    const Node* step = find(node, "step");
    if (step == nullptr) return true;
    const auto number = !step->broken && is_number_node(*step) ? parse_number(step->text) : std::nullopt;
    const bool whole = option_.type.kind == Kind::whole;
    if (!number || !(*number > 0) || (whole && *number != std::floor(*number)))
      return say(step->place, "SPEC_WRONG_TYPE",
                 std::string("step needs a ") + (whole ? "whole " : "") + "number above 0, got " + described(*step),
                 "for example step: " + std::string(whole ? "2" : "0.1"));
    parameter_.step = *number;
    return true;
  }

  bool check_range(Place place) {
    const SearchParameter& p = parameter_;
    if (p.low >= p.high)
      return say(place, "SPEC_BAD_RANGE",
                 "low is " + number_text(p.low) + " and must be below high, which is " + number_text(p.high),
                 "write the smaller number as low");
    if (p.log && p.low <= 0)
      return say(place, "SPEC_BAD_RANGE", "a logarithmic range cannot begin at " + number_text(p.low),
                 "choose a low above 0, or delete log");
    if (p.log && p.step > 0)
      return say(place, "SPEC_BAD_RANGE", "step and log cannot be combined", "keep one of the two");
    if (p.step > p.high - p.low)
      return say(place, "SPEC_BAD_RANGE", "step is larger than the range", "choose a smaller step");
    return true;
  }

  // ---- the condition under which it is varied

  bool read_condition(const Node& node) {
    const std::string hint =
        "write for example 'if: {optimizer.name: [sgd]}', with a parameter that stands above this one";
    if (node.broken) return false;
    if (node.kind != Node::Kind::map || node.entries.empty())
      return say(node.place, "SPEC_BAD_CONDITION", "if needs parameters with their values, got " + described(node),
                 hint);
    bool good = true;
    for (const Entry& entry : node.entries) good = read_parent(entry, hint) && good;
    return good;
  }

  bool read_parent(const Entry& entry, const std::string& hint) {
    const auto parent = std::ranges::find(before_, entry.key, &SearchParameter::key);
    if (parent == before_.end())
      return say(entry.place, "SPEC_BAD_CONDITION", shown(entry.key) + " is not a parameter above " + option_.key,
                 hint);
    if (parent->kind != Form::choice)
      return say(entry.place, "SPEC_BAD_CONDITION",
                 entry.key + " has a range, but a condition needs a parameter with a list of values",
                 "give that parameter a list of values");
    if (entry.value.broken) return false;
    const bool one = entry.value.kind == Node::Kind::scalar;
    const std::vector<Node> values = one ? std::vector<Node>{entry.value} : entry.value.items;
    if (values.empty() || entry.value.kind == Node::Kind::map)
      return say(entry.value.place, "SPEC_BAD_CONDITION", "if needs values of " + entry.key, hint);
    SearchParameter::Condition condition{entry.key, {}};
    bool good = true;
    const std::set<std::string_view> choices(parent->choices.begin(), parent->choices.end());
    for (const Node& value : values) {
      condition.values.push_back(flow_text(value));
      if (!choices.contains(condition.values.back()))
        good = say(value.place, "SPEC_BAD_CONDITION",
                   condition.values.back() + " is not among the choices of " + entry.key,
                   "its choices are " + listed(parent->choices));
    }
    parameter_.only_if.push_back(std::move(condition));
    return good;
  }

  const Option& option_;
  const Environment& environment_;
  const std::vector<SearchParameter>& before_;
  std::vector<Finding>& findings_;
  SearchParameter parameter_;
  std::set<std::string> meant_;  // the keys that misspelt keys were meant to be
};

// Makes an option of a parameter of a command. Its range says whether it is a whole number.
Option parameter_option(const std::string& key, const Node& node) {
  bool whole = node.kind == Node::Kind::map && const_cast<Node&>(node).find("low") != nullptr;
  for (const Entry& entry : node.entries) {
    if (entry.key != "low" && entry.key != "high" && entry.key != "step") continue;
    whole = whole && is_number_node(entry.value) && entry.value.text.find_first_of(".eE") == std::string::npos;
  }
  Option option = *find_option("params");
  option.key = key;
  option.type = {.kind = whole ? Kind::whole : Kind::number, .range = {-1e300, 1e300}};
  return option;
}

std::string key_hint_for(const std::string& key) {
  std::vector<std::string> known;
  for (const Option& option : option_table()) {
    if (is_searchable(option)) known.push_back(option.key);
  }
  const std::string meant = did_you_mean(key, known);
  return meant.empty() ? "write the dotted key of an option, such as optimizer.lr" : "did you mean '" + meant + "'?";
}

}  // namespace

bool takes_range(const Option& option) {
  return !option.is_list() && option.type.choices.empty() &&
         (option.type.kind == Kind::whole || option.type.kind == Kind::number);
}

bool is_searchable(const Option& option) {
  const Kind kind = option.type.kind;
  return option.key != "name" && option.section() != "tune" && kind != Kind::values && option.key != "command";
}

bool read_search(const Node& node, const Environment& environment, std::vector<SearchParameter>& search,
                 std::vector<Finding>& findings) {
  if (node.broken) return false;
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    findings.push_back({node.place, "SPEC_BAD_SEARCH",
                        "tune.search needs options, each with a range or a list of values, got " + described(node),
                        "for example 'search: {optimizer.lr: {low: 1e-4, high: 1e-1, log: true}}'"});
    return false;
  }
  bool good = true;
  for (const Entry& entry : node.entries) {
    const Option* option = find_option(entry.key);
    std::optional<Option> parameter_of_command;
    if (option == nullptr && entry.key.starts_with(kParams) && is_variable_name(entry.key.substr(kParams.size())))
      option = &parameter_of_command.emplace(parameter_option(entry.key, entry.value));
    if (option == nullptr || !is_searchable(*option)) {
      findings.push_back(
          {entry.place, option == nullptr ? ErrorCode("SPEC_UNKNOWN_KEY") : ErrorCode("SPEC_NOT_SEARCHABLE"),
           "tune.search cannot vary " + shown(entry.key) + (option == nullptr ? ": there is no such option" : ""),
           key_hint_for(entry.key)});
      good = false;
      continue;
    }
    auto parameter = ParameterReader(*option, environment, search, findings).read(entry.value);
    good = parameter.has_value() && good;
    if (parameter) search.push_back(std::move(*parameter));
  }
  return good;
}

}  // namespace sinew::spec
