// What the YAML library means by its errors, said to a person. Private to spec/.
#pragma once

#include <string>

#include "spec/source_text.h"

namespace sinew::spec {

// `line`, `column`: 0-based bytes, where the library stopped.
Finding explain_syntax(const std::string& message, int line, int column, const SourceText& source);

}  // namespace sinew::spec
