// For the tests of program/: catches the Error of a call as text, and compares that text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace sinew::program {

// The Error that `act` must throw, as the programs print it ("what [CODE]"), followed by " | " and its hint. Neither
// may be empty.
template <typename Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    EXPECT_FALSE(error.hint.empty()) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 2000U);
    return to_string(error) + " | " + error.hint;
  }
  ADD_FAILURE() << "not refused";
  return "";
}

// Whether a text from refusal() has this code and mentions this place or value.
inline bool is_error(const std::string& text, ErrorCode code, std::string_view mention) {
  return text.find("[" + std::string(code.text()) + "]") != std::string::npos &&
         text.find(mention) != std::string::npos;
}

#define EXPECT_ERROR(text, code, mention) EXPECT_TRUE(::sinew::program::is_error(text, code, mention)) << (text)

}  // namespace sinew::program
