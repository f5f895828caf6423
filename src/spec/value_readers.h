// Reads single values. Each reader returns whether the node is a valid value of the option; if not, it reports the
// problem. Private to spec/.
#pragma once

#include <string>

#include "spec/amounts.h"
#include "spec/value_problems.h"

namespace sinew::spec {

// ---- numbers, with and without a unit (number_values.cpp) ----------------------------------------------------------

bool read_whole(const Node& node, ValueProblems& problems, Whole& value);
bool read_real(const Node& node, ValueProblems& problems, double& value);
bool read_bytes(const Node& node, ValueProblems& problems, int64_t& value);
bool read_duration(const Node& node, ValueProblems& problems, Duration& value);

// ---- texts (text_values.cpp) ---------------------------------------------------------------------------------------

// Reads a text of the option's kind: a choice, a metric, an argument of a command, and so on.
bool read_text_of_kind(const Node& node, ValueProblems& problems, const Environment& environment, std::string& value);
// The value of an entry whose name the user chose (an entry of params or env).
bool read_named_value(const Node& node, ValueProblems& problems, const Environment& environment, NamedValue& value);

}  // namespace sinew::spec
