#include "spec/search.h"

#include "spec/search_parameter.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// Makes an option for a parameter of a command. It is a whole number if low, high and step of the range are written as
// whole numbers.
Option parameter_option(const std::string& key, const Node& node) {
  bool whole = node.kind == Node::Kind::map && node.find("low") != nullptr;
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
    findings.push_back({node.position, "SPEC_BAD_SEARCH",
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
          {entry.position, option == nullptr ? ErrorCode("SPEC_UNKNOWN_KEY") : ErrorCode("SPEC_NOT_SEARCHABLE"),
           "tune.search cannot vary " + shown(entry.key) + (option == nullptr ? ": there is no such option" : ""),
           key_hint_for(entry.key)});
      good = false;
      continue;
    }
    auto parameter = read_parameter(entry.value, search, VariedOption(*option, environment, findings));
    good = parameter.has_value() && good;
    if (parameter) search.push_back(std::move(*parameter));
  }
  return good;
}

}  // namespace sinew::spec
