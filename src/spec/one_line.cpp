#include "spec/one_line.h"

namespace sinew::spec {
namespace {

// `rest` begins with a quote. Returns whether the quote is closed.
bool closes(std::string_view rest) {
  const char quote = rest.empty() ? ' ' : rest[0];
  for (size_t i = 1; i < rest.size(); ++i) {
    if (quote == '"' && rest[i] == '\\') {
      ++i;
    } else if (rest[i] == quote) {
      if (quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote) {
        ++i;
      } else {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<Finding> not_on_one_line(const Node& scalar, std::string_view rest) {
  if (!scalar.quoted) {
    if (rest.starts_with(scalar.text)) return std::nullopt;
    return Finding{scalar.position, "SPEC_BAD_SYNTAX", "this value continues on the next line",
                   "check whether the next line lacks a ':' or is indented too deep; write the value on one line"};
  }
  if (rest.starts_with('|') || rest.starts_with('>')) {
    return Finding{scalar.position, "SPEC_UNSUPPORTED_YAML", "this text has several lines",
                   "write the value on one line, in quotes"};
  }
  if (closes(rest)) return std::nullopt;
  return Finding{scalar.position, "SPEC_NOT_CLOSED", "the quote is not closed on its line",
                 "close it: a value must not continue on the next line"};
}

}  // namespace sinew::spec
