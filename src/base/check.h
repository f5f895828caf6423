// `SINEW_CHECK(condition, values...)` prints the values and aborts if a condition that the programmer guarantees does
// not hold. It is on in every build, because a run survives the loss of a worker, but not a wrong number.
#pragma once

#include <sstream>
#include <string>

namespace sinew {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

template <typename... Values>
[[noreturn]] void check_failed_with(const char* file, int line, const char* condition, const Values&... values) {
  std::ostringstream text;
  ((text << values << ' '), ...);
  check_failed(file, line, condition, text.str());
}

}  // namespace sinew

#define SINEW_CHECK(condition, ...)                                                          \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::sinew::check_failed_with(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
