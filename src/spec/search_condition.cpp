// Reads the condition under which a parameter of tune.search varies (the map after "if:").
#include <algorithm>

#include "spec/search_parameter.h"

namespace sinew::spec {
namespace {

constexpr const char* kHint =
    "write for example 'if: {optimizer.name: [sgd]}', with a parameter that stands above this one";

// Reads one entry: the key of a parameter listed above this one, and the values of that parameter under which this one
// varies.
bool read_parent(const Entry& entry, const std::vector<SearchParameter>& before, const VariedOption& varied,
                 SearchParameter& parameter) {
  const auto parent = std::ranges::find(before, entry.key, &SearchParameter::key);
  if (parent == before.end())
    return varied.say(entry.position, "SPEC_BAD_CONDITION",
                      shown(entry.key) + " is not a parameter above " + varied.key(), kHint);
  if (parent->kind != SearchParameter::Kind::choice)
    return varied.say(entry.position, "SPEC_BAD_CONDITION",
                      entry.key + " has a range, but a condition needs a parameter with a list of values",
                      "give that parameter a list of values");
  if (entry.value.broken) return false;
  const bool one = entry.value.kind == Node::Kind::scalar;
  const std::vector<Node> values = one ? std::vector<Node>{entry.value} : entry.value.items;
  if (values.empty() || entry.value.kind == Node::Kind::map)
    return varied.say(entry.value.position, "SPEC_BAD_CONDITION", "if needs values of " + entry.key, kHint);
  SearchParameter::Condition condition{entry.key, {}};
  bool good = true;
  const std::set<std::string_view> choices(parent->choices.begin(), parent->choices.end());
  for (const Node& value : values) {
    condition.values.push_back(flow_text(value));
    if (!choices.contains(condition.values.back()))
      good = varied.say(value.position, "SPEC_BAD_CONDITION",
                        condition.values.back() + " is not among the choices of " + entry.key,
                        "its choices are " + listed(parent->choices));
  }
  parameter.only_if.push_back(std::move(condition));
  return good;
}

}  // namespace

bool read_condition(const Node& map, const std::vector<SearchParameter>& before, const VariedOption& varied,
                    SearchParameter& parameter) {
  if (map.broken) return false;
  if (map.kind != Node::Kind::map || map.entries.empty())
    return varied.say(map.position, "SPEC_BAD_CONDITION",
                      "if needs parameters with their values, got " + described(map), kHint);
  bool good = true;
  for (const Entry& entry : map.entries) good = read_parent(entry, before, varied, parameter) && good;
  return good;
}

}  // namespace sinew::spec
