// Reads one parameter of tune.search: a list or a range of values, and the condition under which it varies. Private to
// spec/.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/search.h"

namespace sinew::spec {

inline constexpr std::string_view kParams = "params.";  // keys of a command's own parameters begin with it

// The option that a parameter varies, with methods that report problems of the parameter and check values by the
// option's rules.
class VariedOption {
 public:
  VariedOption(const Option& option, const Environment& environment, std::vector<Finding>& findings)
      : option_(option), environment_(environment), findings_(findings) {}

  const Option& option() const { return option_; }
  const std::string& key() const { return option_.key; }

  // Reports a problem; returns false.
  bool say(Position position, ErrorCode code, std::string what, std::string hint) const;
  // Reports a problem for each of `keys` that the map has. Returns true if the map has none of them.
  bool refuse(const Node& map, std::initializer_list<const char*> keys, const std::string& why) const;
  std::string form() const;  // a hint: how a parameter of this option is written

  // Returns whether the value is valid for the option. A parameter of a command takes any single value.
  bool fits(const Node& value) const;
  // Reads the boolean at this key of the map, if the map has the key. Returns false if the value is not a boolean.
  bool read_flag(const Node& map, const char* key, bool& value) const;

 private:
  const Option& option_;
  const Environment& environment_;
  std::vector<Finding>& findings_;
};

std::string flow_text(const Node& node);  // writes the node as one line of a job file

// These readers fill a part of the parameter and report each problem. They return true if there is no problem.
bool read_choices(const Node& list, const VariedOption& varied, SearchParameter& parameter);
// Reads a map with the list under the key `choices`.
bool read_listed_choices(const Node& map, const VariedOption& varied, SearchParameter& parameter);
// `meant` has the correct names of misspelt keys in the map. read_range does not report these names as missing.
bool read_range(const Node& map, const std::set<std::string>& meant, const VariedOption& varied,
                SearchParameter& parameter);
// Reads the map under the key `if`. `before` has the parameters above this one.
bool read_condition(const Node& map, const std::vector<SearchParameter>& before, const VariedOption& varied,
                    SearchParameter& parameter);

// Reads the whole parameter. Returns nullopt if it has a problem.
std::optional<SearchParameter> read_parameter(const Node& node, const std::vector<SearchParameter>& before,
                                              const VariedOption& varied);

}  // namespace sinew::spec
