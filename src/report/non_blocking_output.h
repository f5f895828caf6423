// Inside report/: writes to stdout or stderr and never blocks for long. So neither training nor the handling of signals
// depends on the program that reads the stream.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace sinew::report {

class NonBlockingOutput {
 public:
  explicit NonBlockingOutput(int descriptor, double patience_seconds = 5);
  ~NonBlockingOutput();
  NonBlockingOutput(const NonBlockingOutput&) = delete;
  NonBlockingOutput& operator=(const NonBlockingOutput&) = delete;

  // Tries to write the text for at most `patience_seconds` and then drops the rest. This happens, for example, if a
  // pager waits or the terminal was stopped. After that, calls do not wait at all until one of them has written its
  // whole text.
  void write(std::string_view text);

 private:
  size_t written(std::string_view text);
  ssize_t put(std::string_view piece) const;

  int descriptor_, own_ = -1;  // own_: the file behind descriptor_, opened a second time with O_NONBLOCK
  bool socket_ = false;
  double patience_seconds_;
  bool stalled_ = false;
  bool torn_ = false;  // the last output ends within a line, because the rest was dropped
};

}  // namespace sinew::report
