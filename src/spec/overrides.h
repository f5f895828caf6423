// "optimizer.lr=3e-4" from the command line, put into the tree of the file. Private to spec/.
#pragma once

#include <string>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// In their order. An override of a section ("optimizer=sgd", "optimizer={name: sgd}") replaces the whole section.
// Returns the keys whose override could not be read.
std::vector<std::string> apply_overrides(Node& root, const std::vector<std::string>& overrides,
                                         std::vector<Finding>& findings);

// What to try when `key` is no key of `section` ("" at the top).
std::string key_hint(const std::string& section, const std::string& key);

}  // namespace sinew::spec
