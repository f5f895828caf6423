// For tests: functions that catch the Error of a call and compare its code and message.
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

// Returns the Error that `action` throws: "what [CODE]", as the programs print it, then " | " and the hint. Returns ""
// if it throws none. Checks that the message is not empty and does not repeat a long input.
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

// Returns whether `text`, a result of error_of(), has this code, has a hint, and contains `mention` (a place or a
// value).
inline bool is_error(const std::string& text, ErrorCode code, std::string_view mention) {
  return text.find("[" + std::string(code.text()) + "]") != std::string::npos && !text.ends_with(" | ") &&
         text.find(mention) != std::string::npos;
}

#define EXPECT_ERROR(text, code, mention) EXPECT_TRUE(::sinew::is_error(text, code, mention)) << (text)

}  // namespace sinew
