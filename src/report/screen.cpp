#include "report/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/printable.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";

}  // namespace

Screen::Screen(const ReporterOptions& options)
    : output_(options.output),
      errors_(options.errors),
      own_output_(STDOUT_FILENO),
      own_errors_(STDERR_FILENO),
      terminal_(options.terminal),
      color_(options.color && options.terminal),
      columns_(options.columns) {}

void Screen::out(std::string_view text) {
  if (output_) {
    output_(text);
  } else {
    own_output_.write(text);
  }
}

void Screen::err(std::string_view text) {
  if (errors_) {
    errors_(text);
  } else {
    own_errors_.write(text);
  }
}

int Screen::columns() const {
  int columns = columns_;
  winsize size{};
  if (!output_ && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    columns = size.ws_col;               // read each time, because the user may resize the terminal
  return columns > 1 ? columns - 1 : 1;  // some terminals start a new line if the last column is full
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
  const bool warning = level == Level::warning;
  const std::string word = level == Level::info ? "" : warning ? "warning: " : "error: ";
  const std::string whole = word + printable(text, true), clean = terminal_ ? wrap(whole, columns()) : whole;
  if (level == Level::info) return line(clean);
  const std::string shown =
      color_ ? (warning ? "\x1b[33m" : "\x1b[31m") + word + "\x1b[0m" + clean.substr(word.size()) : clean;
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
