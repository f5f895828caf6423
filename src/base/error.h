// The exception for problems that the user can fix.
//
// The program throws `Error` for a mistake of the user, or for a state of the machine that the user can change. main()
// catches it and prints its `what` and its `hint`: what is wrong, and what to try. For a programmer's mistake see
// SINEW_CHECK (base/check.h). Events that an elastic run expects, such as a lost peer, are values and not exceptions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sinew {

// The stable name of one kind of error, such as SPEC_UNKNOWN_KEY. Programs and tests compare the code, so the wording
// of the message may change at any time. The compiler checks the form of a code: capital letters, digits and
// underscores, at least two words. docs/reference/errors.md lists all codes.
class ErrorCode {
 public:
  template <size_t N>
  consteval ErrorCode(const char (&text)[N]) : text_(text, N - 1) {  // NOLINT(google-explicit-constructor)
    bool words = false;
    for (const char c : text_) {
      if (c == '_') words = true;
      if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) throw "not an error code";
    }
    if (!words) throw "an error code has at least two words";
  }
  constexpr std::string_view text() const { return text_; }
  friend constexpr bool operator==(const ErrorCode&, const ErrorCode&) = default;

 private:
  std::string_view text_;
};

struct Error : std::runtime_error {
  // `what` says in one line what is wrong and where. `hint` says what to try; it is empty only if nothing can be tried.
  Error(ErrorCode code_given, const std::string& what, std::string hint_given)
      : std::runtime_error(what), code(code_given), hint(std::move(hint_given)) {}
  ErrorCode code;
  std::string hint;
};

// A mistake on the command line, or a job file that cannot be read. The program exits with code 2 instead of 1.
struct UsageError : Error {
  using Error::Error;
};

// "what [CODE]", as the programs print an error. The code is at the end of the first line.
inline std::string to_string(const Error& error) {
  std::string text = error.what();
  return text.insert(std::min(text.find('\n'), text.size()), " [" + std::string(error.code.text()) + "]");
}

// "what [CODE] (try: hint)", for a place that keeps an error as one text.
inline std::string text_with_hint(const Error& error) {
  return to_string(error) + (error.hint.empty() ? "" : " (try: " + error.hint + ")");
}

}  // namespace sinew
