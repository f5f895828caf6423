// Inside report/: prints what a run shows on stdout and stderr. On a terminal that moves its cursor, one live line
// stays at the bottom and messages scroll above it. Elsewhere it prints only complete lines and never '\r'.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "report/non_blocking_output.h"
#include "report/report.h"

namespace sinew::report {

class Screen {
 public:
  // Returns the live line, at most so many columns wide.
  using Draw = std::function<std::string(int columns)>;

  explicit Screen(const ReporterOptions& options);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool has_live_line() const { return terminal_.moves_cursor; }
  bool color() const { return terminal_.color; }
  int columns() const;               // the most columns of a line on stdout; 0: any number
  void live(Draw draw);              // replaces the live line; only if has_live_line()
  void line(std::string_view text);  // prints one complete line to stdout
  // Prints a message, on a terminal broken between words. Warnings and errors go to stderr.
  void message(Level level, std::string_view text);
  void pass_on(std::string_view text, bool errors);  // prints another program's line unchanged
  // Leaves the live line on the screen; the next one appears below it.
  void end_live();
  void erase_live();

 private:
  void out(std::string_view text);
  void err(std::string_view text);
  void error_line(const std::string& text);
  Terminal terminal_of(int descriptor) const;
  std::string erased() const;
  std::string drawn();

  std::function<void(std::string_view)> output_, errors_;
  NonBlockingOutput own_output_, own_errors_;  // used if output_ or errors_ is empty
  std::function<Terminal(int)> terminal_now_;
  Terminal terminal_, error_terminal_;  // at the beginning
  Draw draw_;
  std::string live_;  // the live line, as it was drawn last; empty if there is none
};

}  // namespace sinew::report
