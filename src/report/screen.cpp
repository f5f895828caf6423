#include "report/screen.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "report/crash_notice.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

constexpr int kUsualColumns = 80;  // of a terminal that does not say its width
// The terminal echoes Ctrl-C as ^C behind the live line. If that began a new row, the row above could not be erased.
constexpr int kEchoColumns = 2;

std::string without_colors(std::string_view text) {
  std::string visible;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else {
      visible += text[i];
    }
  }
  return visible;
}

}  // namespace

Screen::Screen(const ReporterOptions& options)
    : output_(options.output),
      errors_(options.errors),
      own_output_(STDOUT_FILENO),
      own_errors_(STDERR_FILENO),
      terminal_now_(options.terminal),
      terminal_(terminal_of(STDOUT_FILENO)),
      error_terminal_(terminal_of(STDERR_FILENO)) {
  if (has_live_line() && options.tells_crash) tell_crash(options.directory);
}

Screen::~Screen() {
  erase_live();
  forget_crash();
}

Terminal Screen::terminal_of(int descriptor) const {
  return terminal_now_ ? terminal_now_(descriptor) : Terminal();
}

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

// Reads the width each time, because the user may resize the terminal.
int Screen::columns() const {
  return usable_columns(terminal_of(STDOUT_FILENO));
}

// Returns the control sequence that erases the live line. If the window has become narrower since the line was drawn,
// the terminal has broken the line into several rows, and the cursor is in the last one.
std::string Screen::erased() const {
  const int rows = rows_of(without_colors(live_), terminal_of(STDOUT_FILENO).columns);
  return rows > 1 ? "\r\x1b[" + std::to_string(rows - 1) + "A\x1b[J" : "\r\x1b[K";
}

// Returns the live line in the present width.
std::string Screen::drawn() {
  const int columns = this->columns();
  live_ = draw_(std::max(1, (columns > 0 ? columns : kUsualColumns) - kEchoColumns));
  return live_;
}

void Screen::live(Draw draw) {
  const std::string before = live_, erase = erased();
  draw_ = std::move(draw);
  const std::string now = drawn();
  if (now == before) return;
  if (before.empty()) show_live_line(true);
  // A line that is written over the old one does not flicker, as an erased one may.
  out((erase == "\r\x1b[K" ? "\r" : erase) + now + "\x1b[K");
}

void Screen::line(std::string_view text) {
  if (live_.empty()) return out(std::string(text) + "\n");
  const std::string erase = erased();
  out(erase + std::string(text) + "\n" + drawn());
}

void Screen::error_line(const std::string& text) {
  const bool beside = !live_.empty() && error_terminal_.moves_cursor;
  if (beside) out(erased());
  err(text + "\n");
  if (beside) out(drawn());
}

void Screen::message(Level level, std::string_view text) {
  const bool warning = level == Level::warning;
  const std::string word = level == Level::info ? "" : warning ? "warning:" : "error:";
  const std::string whole = (word.empty() ? "" : word + " ") + printable(text, true);
  const std::string clean =
      wrap(whole, usable_columns(terminal_of(level == Level::info ? STDOUT_FILENO : STDERR_FILENO)));
  if (level == Level::info) return line(clean);
  error_line(error_terminal_.color ? (warning ? "\x1b[33m" : "\x1b[31m") + word + "\x1b[0m" + clean.substr(word.size())
                                   : clean);
}

void Screen::pass_on(std::string_view text, bool errors) {
  if (!errors) return line(text);
  error_line(std::string(text));
}

// Draws the line once more, because the echo of a key may stand behind it.
void Screen::end_live() {
  if (live_.empty()) return;
  const std::string erase = erased();
  out(erase + drawn() + "\n");
  live_.clear();
  show_live_line(false);
}

void Screen::erase_live() {
  if (live_.empty()) return;
  out(erased());
  live_.clear();
  show_live_line(false);
}

}  // namespace sinew::report
