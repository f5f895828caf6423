// Checks that a value ends on the line on which it begins. Private to spec/.
#pragma once

#include <optional>
#include <string_view>

#include "spec/tree.h"

namespace sinew::spec {

// `rest` is the text of the scalar's line from the scalar on. Returns a problem if the value does not end on that line.
// The YAML library would join the lines of such a value, and would accept the end of the file as a closing quote.
std::optional<Finding> not_on_one_line(const Node& scalar, std::string_view rest);

}  // namespace sinew::spec
