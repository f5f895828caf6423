// For tests: the error that must come.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"

namespace sinew::data {

template <typename Do>
Error error_of(Do something) {
  try {
    something();
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint.empty()) << error.what();
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error("");
}

}  // namespace sinew::data
