// For tests: the Error that a call throws, and what a test compares of it.
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

// Whether an error_of() has this code and mentions this place or value.
inline bool is_error(const std::string& text, ErrorCode code, std::string_view mention) {
  return text.find("[" + std::string(code.text()) + "]") != std::string::npos &&
         text.find(mention) != std::string::npos;
}

#define EXPECT_ERROR(text, code, mention) EXPECT_TRUE(::sinew::data::is_error(text, code, mention)) << (text)

}  // namespace sinew::data
