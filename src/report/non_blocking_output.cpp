#include "report/non_blocking_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>

#include "base/clock.h"

namespace sinew::report {
namespace {

constexpr double kPauseSeconds = 0.01;  // the pause if a write fails although poll() has reported room

bool has_room(int descriptor, double seconds) {
  pollfd ready{descriptor, POLLOUT, 0};
  return ::poll(&ready, 1, static_cast<int>(std::ceil(std::max(0.0, seconds) * 1000))) > 0;
}

}  // namespace

// Opens the stream a second time instead of setting O_NONBLOCK on the given descriptor. Other processes, such as the
// shell that started this one, share the open file behind the descriptor, and the flag would affect them. It is not
// enough to call poll() first: a terminal reports room and then blocks on the rest of a larger write.
NonBlockingOutput::NonBlockingOutput(int descriptor, double patience_seconds)
    : descriptor_(descriptor), patience_seconds_(patience_seconds) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return;
  socket_ = S_ISSOCK(facts.st_mode);
  if (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    own_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
}

NonBlockingOutput::~NonBlockingOutput() {
  if (own_ >= 0) ::close(own_);
}

ssize_t NonBlockingOutput::put(std::string_view piece) const {
  if (socket_) return ::send(descriptor_, piece.data(), piece.size(), MSG_DONTWAIT);
  return ::write(own_ >= 0 ? own_ : descriptor_, piece.data(), piece.size());
}

// Writes the text. Returns how many bytes of it the stream accepted.
size_t NonBlockingOutput::written(std::string_view text) {
  const double end = system_clock().monotonic_seconds() + (stalled_ ? 0 : patience_seconds_);
  size_t done = 0;
  while (done < text.size()) {
    const double left = end - system_clock().monotonic_seconds();
    if (!has_room(own_ >= 0 ? own_ : descriptor_, left)) {
      if (left <= 0) break;
      continue;
    }
    // a pipe that has room accepts PIPE_BUF bytes without blocking
    const ssize_t taken = put(text.substr(done, PIPE_BUF));
    if (taken > 0) {
      done += static_cast<size_t>(taken);
    } else if (taken == 0 || left <= 0 || (errno != EINTR && errno != EAGAIN)) {
      break;
    } else if (errno == EAGAIN) {
      system_clock().sleep_seconds(kPauseSeconds);
    }
  }
  return done;
}

void NonBlockingOutput::write(std::string_view text) {
  if (text.empty()) return;
  if (torn_) {
    if (written("\n") == 0) return;
    torn_ = false;
  }
  const size_t done = written(text);
  stalled_ = done < text.size();
  torn_ = stalled_ && done > 0 && text[done - 1] != '\n';
}

}  // namespace sinew::report
