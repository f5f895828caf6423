// Checks that a value ends on the line on which it begins. Private to spec/.
#pragma once

#include <optional>
#include <string_view>

#include "spec/tree.h"

namespace sinew::spec {

// `rest` is the line from the scalar's text on. Returns what is wrong if the value has several lines: the YAML library
// would join them, and would accept the end of the file as a closing quote.
std::optional<Finding> not_on_one_line(const Node& scalar, std::string_view rest);

}  // namespace sinew::spec
