// Checks the rules between options. Each violation is reported at the position of the option that causes it. Private to
// spec/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spec/spec.h"
#include "spec/tree.h"

namespace sinew::spec {

// What the job file and the overrides give; the map's keys are dotted keys of options and sections.
struct Given {
  Position key, value;
  bool good = true;  // true: the value has no problem of its own
};
using GivenKeys = std::map<std::string, Given>;

// Skips rules whose options have problems of their own, because the messages of those rules would repeat the problems
// or mislead.
std::vector<Finding> check_rules(const Job& job, const GivenKeys& given);
// The rules of a job with a command (command_rules.cpp). check_rules calls it.
std::vector<Finding> check_command_rules(const Job& job, const GivenKeys& given);

}  // namespace sinew::spec
