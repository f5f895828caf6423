// Replaces aliases by the option's own key. An alias is a second name that job files may use for an option, such as
// tune.stopper for tune.pruner. Private to spec/.
//
// Readers replace aliases before anything else looks at the tree, so every later step sees an option's own key only.
#pragma once

#include <string>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// The option's own key, for a dotted key that may use an alias; any other key is returned as it is.
std::string without_alias(const std::string& key);

// Replaces every alias among the keys below `node` by the option's own key. `node` is the value of the section
// `section` ("" for the whole file). Reports an option that a section gives under both of its names.
void replace_aliases(Node& node, const std::string& section, std::vector<Finding>& findings);

}  // namespace sinew::spec
