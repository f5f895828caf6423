// Rules between options, each reported at the place of its culprit. Private to spec/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spec/spec.h"
#include "spec/tree.h"

namespace sinew::spec {

// What the file gives: dotted keys of options and sections.
struct Given {
  Place key, value;
  bool good = true;  // the value was read without a problem
};
using GivenKeys = std::map<std::string, Given>;

// Rules whose options had problems of their own are left out: their message would only repeat or mislead.
std::vector<Finding> check_rules(const Job& job, const GivenKeys& given);
// Those of a job with a command (command_rules.cpp); check_rules asks them.
std::vector<Finding> check_command_rules(const Job& job, const GivenKeys& given);

}  // namespace sinew::spec
