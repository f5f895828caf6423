#include "report/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "report/words.h"

namespace sinew::report {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";

// Text that nobody takes (a closed pipe, a terminal that is gone) is let go: training does not depend on its watcher.
void write_stream(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      if (::poll(&ready, 1, 100) <= 0) return;
    } else if (written == 0 || errno != EINTR) {
      return;
    }
  }
}

}  // namespace

Screen::Screen(const ReporterOptions& options)
    : output_(options.output),
      errors_(options.errors),
      terminal_(options.terminal),
      color_(options.color && options.terminal),
      columns_(options.columns) {}

void Screen::out(std::string_view text) {
  if (output_) {
    output_(text);
  } else {
    write_stream(STDOUT_FILENO, text);
  }
}

void Screen::err(std::string_view text) {
  if (errors_) {
    errors_(text);
  } else {
    write_stream(STDERR_FILENO, text);
  }
}

int Screen::columns() const {
  int columns = columns_;
  winsize size{};
  if (!output_ && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    columns = size.ws_col;               // may be resized
  return columns > 1 ? columns - 1 : 1;  // a full last column makes some terminals wrap
}

void Screen::live(std::string text) {
  if (text == live_) return;
  live_ = std::move(text);
  out("\r" + live_ + "\x1b[K");
}

void Screen::line(std::string_view text) {
  if (live_.empty()) return out(std::string(text) + "\n");
  out(std::string(kErase).append(text).append("\n").append(live_));
}

void Screen::message(Level level, std::string_view text) {
  const std::string clean = printable(text, true);
  if (level == Level::info) return line(clean);
  const bool warning = level == Level::warning;
  const std::string word = warning ? "warning: " : "error: ";
  const std::string shown = color_ ? (warning ? "\x1b[33m" : "\x1b[31m") + word + "\x1b[0m" + clean : word + clean;
  if (!live_.empty()) out(kErase);
  err(shown + "\n");
  if (!live_.empty()) out(live_);
}

void Screen::pass_on(std::string_view text, bool errors) {
  if (!errors) return line(text);
  if (!live_.empty()) out(kErase);
  err(std::string(text) + "\n");
  if (!live_.empty()) out(live_);
}

void Screen::end_live() {
  if (live_.empty()) return;
  out("\n");
  live_.clear();
}

}  // namespace sinew::report
