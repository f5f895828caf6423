// Text in lower case, in which two spellings of a word are the same.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

// Changes only the letters of ASCII, whatever the locale. All other bytes stay as they are.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace sinew
