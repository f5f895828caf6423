// Reads the value of one option from a node of the tree into a Job, and writes it back as text. Private to spec/.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/options.h"
#include "spec/tree.h"

namespace sinew::spec {

// Reads the node into the job and appends each problem to `findings`. Returns true if the value is valid.
bool read_value(const Option& option, const Node& node, const Environment& environment, Job& job,
                std::vector<Finding>& findings);

// The value in the form of a job file: "64", "[256]", "10ep", "\"a b\"". "" if it is not set.
std::string value_text(const Option& option, const Job& job);

// What the option accepts, for messages and the reference: "a whole number from 1 to 1024, or auto".
std::string expectation(const Option& option);
std::string item_expectation(const Option& option);  // what the option accepts as one item of its list
// A valid value: "64".
std::string example(const Option& option);

// Writes the text as YAML: plain if every YAML reader reads it as this string, otherwise in double quotes.
std::string quoted_text(const std::string& text);

// ---- ${NAME} -------------------------------------------------------------------------------------------------------

struct Expanded {
  std::string text;
  std::string problem, hint;             // `problem` is empty if all variables were replaced
  ErrorCode code = "SPEC_BAD_VARIABLE";  // the code of the problem
};
Expanded expand_variables(std::string_view text, const Environment& environment);
std::string escape_dollars(std::string_view text);  // expand_variables turns the result back into `text`

// ---- strings -------------------------------------------------------------------------------------------------------

bool is_one_of(const std::string& word, std::initializer_list<const char*> words);
std::string lower(std::string text);
// Returns whether the node is unquoted and other YAML readers read it as a boolean or a number.
bool is_ambiguous(const Node& node);
bool is_name(const std::string& text);
bool is_variable_name(std::string_view text);  // valid for an environment variable, at most 64 characters

// Patterns of the JSON Schema that accept the same texts as the checks.
std::string text_pattern();
std::string word_pattern();  // accepts the arguments of a command: like text_pattern, but also line ends and tabs
std::string name_pattern();
std::string variable_name_pattern();

}  // namespace sinew::spec
