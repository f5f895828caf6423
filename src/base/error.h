// Words for what the user can fix.
//
// `Error` is thrown for a mistake or an environment the user can put right, and is caught once, in main, which prints
// the two sentences (*what* happened, what to *try*). It is never used for programmer mistakes (base/check.h) nor for
// what an elastic world expects (a lost peer is a value, not an exception).
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace sinew {

struct Error : std::runtime_error {
  // `what`: what is wrong and where, one line. `hint`: what to try; may be empty only where nothing can be tried.
  explicit Error(const std::string& what, std::string hint = "") : std::runtime_error(what), hint(std::move(hint)) {}
  std::string hint;
};

}  // namespace sinew
