// For tests: catches the Error of a call as text, and compares that text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace sinew::data {

// The Error as the programs print it, "what [CODE]", followed by " / " and its hint. "" when the call throws no Error.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint.empty()) << error.what();
    return to_string(error) + " / " + error.hint;
  }
  return "";
}

// Whether a text from error_of() has this code and mentions this place or value.
inline bool is_error(const std::string& text, ErrorCode code, std::string_view mention) {
  return text.find("[" + std::string(code.text()) + "]") != std::string::npos &&
         text.find(mention) != std::string::npos;
}

#define EXPECT_ERROR(text, code, mention) EXPECT_TRUE(::sinew::data::is_error(text, code, mention)) << (text)

}  // namespace sinew::data
