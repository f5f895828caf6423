#include "spec/search_parameter.h"

#include <algorithm>

#include "base/joined.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

const std::vector<std::string> kKeys = {"low", "high", "log", "step", "choices", "ordered", "if"};

bool read_map(const Node& map, const std::vector<SearchParameter>& before, const VariedOption& varied,
              SearchParameter& parameter) {
  bool good = true;
  std::set<std::string> meant_keys;
  for (const Entry& entry : map.entries) {
    if (std::ranges::find(kKeys, entry.key) != kKeys.end()) continue;
    const std::string meant = did_you_mean(entry.key, kKeys);
    meant_keys.insert(meant);
    good = varied.say(entry.position, "SPEC_UNKNOWN_KEY",
                      "unknown key " + shown(entry.key) + " in tune.search: " + varied.key(),
                      meant.empty() ? "keys here: " + listed(kKeys) : "did you mean '" + meant + "'?");
  }
  const bool values = map.find("choices") != nullptr ? read_listed_choices(map, varied, parameter)
                                                     : read_range(map, meant_keys, varied, parameter);
  good = values && good;
  if (const Node* condition = map.find("if")) good = read_condition(*condition, before, varied, parameter) && good;
  return good;
}

}  // namespace

bool VariedOption::say(Position position, ErrorCode code, std::string what, std::string hint) const {
  findings_.push_back({position, code, std::move(what), std::move(hint)});
  return false;
}

bool VariedOption::refuse(const Node& map, std::initializer_list<const char*> keys, const std::string& why) const {
  bool good = true;
  for (const char* key : keys) {
    if (const Node* found = map.find(key))
      good = say(found->position, "SPEC_BAD_SEARCH", std::string(key) + why, "delete it");
  }
  return good;
}

std::string VariedOption::form() const {
  const std::string value = example(option_);
  const std::string list = "'" + option_.key + ": [" + value + ", ...]'";
  if (!takes_range(option_)) return "write a list of values: " + list;
  return "write '" + option_.key + ": {low: ..., high: ...}', or a list of values: " + list;
}

bool VariedOption::fits(const Node& value) const {
  Job scratch;
  if (option_.key.starts_with(kParams)) {
    Node entry;
    entry.kind = Node::Kind::map;
    entry.position = value.position;
    entry.entries.push_back({option_.key.substr(kParams.size()), value.position, value});
    return read_value(*find_option("params"), entry, environment_, scratch, findings_);
  }
  return read_value(option_, value, environment_, scratch, findings_);
}

bool VariedOption::read_flag(const Node& map, const char* key, bool& value) const {
  const Node* flag = map.find(key);
  if (flag == nullptr) return true;
  if (flag->broken) return false;
  if (!is_true_or_false(*flag))
    return say(flag->position, "SPEC_WRONG_TYPE", std::string(key) + " needs true or false, got " + described(*flag),
               "write " + std::string(key) + ": true");
  value = flag->text == "true";
  return true;
}

std::string flow_text(const Node& node) {
  if (node.kind == Node::Kind::list) return "[" + joined(node.items, ", ", flow_text) + "]";
  return is_string_node(node) ? quoted_text(node.text) : node.text;
}

std::optional<SearchParameter> read_parameter(const Node& node, const std::vector<SearchParameter>& before,
                                              const VariedOption& varied) {
  if (node.broken) return std::nullopt;
  SearchParameter parameter;
  parameter.key = varied.key();
  bool good = true;
  if (node.kind == Node::Kind::list) {
    good = read_choices(node, varied, parameter);
  } else if (node.kind == Node::Kind::map) {
    good = read_map(node, before, varied, parameter);
  } else {
    good =
        varied.say(node.position, "SPEC_BAD_SEARCH",
                   "tune.search: " + varied.key() + " needs a range or a list, got " + described(node), varied.form());
  }
  return good ? std::optional(std::move(parameter)) : std::nullopt;
}

}  // namespace sinew::spec
