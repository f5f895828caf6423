// Puts overrides of the command line ("optimizer.lr=3e-4") into the tree of the job file. Private to spec/.
#pragma once

#include <string>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// Applies the overrides in their order. An override of a section ("optimizer=sgd", "optimizer={name: sgd}") replaces
// the whole section. Returns the keys of the overrides whose values are not valid YAML.
std::vector<std::string> apply_overrides(Node& root, const std::vector<std::string>& overrides,
                                         std::vector<Finding>& findings);

// The hint for a `key` that `section` does not have ("" is the top level).
std::string key_hint(const std::string& section, const std::string& key);

}  // namespace sinew::spec
