// Inside report/: writes to stdout or stderr without ever blocking for long. So training and signal handling do not
// depend on the program that reads the stream.
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

  // Tries to write the text for at most `patience_seconds` and then drops the rest, for example because a pager waits
  // or a terminal is stopped or gone. After a drop, later calls do not wait at all until a text was written completely.
  void write(std::string_view text);

 private:
  size_t written(std::string_view text);
  ssize_t put(std::string_view piece) const;

  int descriptor_, own_ = -1;  // own_: the file of descriptor_, opened a second time with O_NONBLOCK
  bool socket_ = false;
  double patience_seconds_;
  bool stalled_ = false;
  bool torn_ = false;  // the last output ends within a line, because its rest was dropped
};

}  // namespace sinew::report
