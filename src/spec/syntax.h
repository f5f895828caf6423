// Translates the errors of the YAML library for users. Private to spec/.
#pragma once

#include <string>

#include "spec/source_text.h"

namespace sinew::spec {

// `line` and `column` say where the library stopped. Both count from 0, and columns count bytes.
Finding explain_syntax(const std::string& message, int line, int column, const SourceText& source);

}  // namespace sinew::spec
