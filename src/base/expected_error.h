// For tests: the Error that a call throws, and what a test compares of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace sinew {

// Returns the code of the Error that `action` throws, or "" if it throws none.
template <typename Action>
std::string code_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(error.code.text());
  }
  return "";
}

// Returns the Error that `action` throws as the programs print it, "what [CODE]", followed by " | " and its hint.
// Returns "" if it throws none. The sentence must not be empty, and must not repeat a long input.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_FALSE(what.empty());
    EXPECT_LT(what.size(), 2000U);
    return to_string(error) + " | " + error.hint;
  }
  return "";
}

// Whether an error_of() has this code, has a hint, and mentions this place or value.
inline bool is_error(const std::string& text, ErrorCode code, std::string_view mention) {
  return text.find("[" + std::string(code.text()) + "]") != std::string::npos && !text.ends_with(" | ") &&
         text.find(mention) != std::string::npos;
}

#define EXPECT_ERROR(text, code, mention) EXPECT_TRUE(::sinew::is_error(text, code, mention)) << (text)

}  // namespace sinew
