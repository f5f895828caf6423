// One option's value: from a node of the tree into a Job, and back to text. Private to spec/.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/options.h"
#include "spec/tree.h"

namespace sinew::spec {

// Reads the node into the job, or reports every reason why not. True when the whole value was good.
bool read_value(const Option& option, const Node& node, const Environment& environment, Job& job,
                std::vector<Finding>& findings);

// The value as it is written in a job file: "64", "[256]", "10ep", "\"a b\"". "" when it is not set.
std::string value_text(const Option& option, const Job& job);

// "a whole number from 1 to 1024, or auto": what is expected, for messages and the reference.
std::string expectation(const Option& option);
std::string item_expectation(const Option& option);  // of one item, for lists
// A value that would be accepted: "64".
std::string example(const Option& option);

// Plain where no reader of YAML could take it for anything but this string; else in double quotes.
std::string quoted_text(const std::string& text);

// ---- ${NAME} -------------------------------------------------------------------------------------------------------

struct Expanded {
  std::string text;
  std::string problem, hint;  // problem empty: expanded
};
Expanded expand_variables(std::string_view text, const Environment& environment);
std::string escape_dollars(std::string_view text);  // what expand_variables turns back into `text`

// ---- strings -------------------------------------------------------------------------------------------------------

bool is_one_of(const std::string& word, std::initializer_list<const char*> words);
std::string lower(std::string text);
bool is_ambiguous(const Node& node);  // plain, and another reader of YAML takes it for a boolean or a number
bool is_name(const std::string& text);
bool is_variable_name(std::string_view text);  // fit for an environment variable, and not too long

// Patterns of the schema, twins of the checks.
std::string text_pattern();
std::string word_pattern();  // of a command: as text, and with line ends and tabs
std::string name_pattern();
std::string variable_name_pattern();

}  // namespace sinew::spec
