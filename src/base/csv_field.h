// Writes one field of a CSV file.
#pragma once

#include <string>

namespace sinew {

// Returns the text as a field of RFC 4180: in quotes if it has a comma, a quote or a line break.
inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace sinew
