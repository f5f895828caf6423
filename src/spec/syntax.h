// Translates the errors of the YAML library for users. Private to spec/.
#pragma once

#include <string>

#include "spec/source_text.h"

namespace sinew::spec {

// `line` and `column` (in bytes) are 0-based: where the library stopped.
Finding explain_syntax(const std::string& message, int line, int column, const SourceText& source);

}  // namespace sinew::spec
