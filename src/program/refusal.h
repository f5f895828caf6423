// For the tests of program/: what a refusal says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace sinew::program {

// The message of the Error that `act` must end in, its hint behind it; what may not be empty is not.
template <typename Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    EXPECT_FALSE(error.hint.empty()) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 2000U);
    return std::string(error.what()) + " | " + error.hint;
  }
  ADD_FAILURE() << "not refused";
  return "";
}

}  // namespace sinew::program
