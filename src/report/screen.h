// Inside report/: prints what a run shows on stdout and stderr. On a terminal, one live line stays at the bottom and
// messages scroll above it. Elsewhere it prints only complete lines and never '\r'.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "report/non_blocking_output.h"
#include "report/report.h"

namespace sinew::report {

class Screen {
 public:
  explicit Screen(const ReporterOptions& options);

  int columns() const;               // maximum width of the live line
  void live(std::string text);       // replaces the live line; only on a terminal
  void line(std::string_view text);  // prints one complete line to stdout
  // Prints a message, on a terminal broken between words. Warnings and errors go to stderr.
  void message(Level level, std::string_view text);
  void pass_on(std::string_view text, bool errors);  // prints another program's line unchanged
  // Leaves the live line on the screen; the next one appears below it.
  void end_live();

 private:
  void out(std::string_view text);
  void err(std::string_view text);

  std::function<void(std::string_view)> output_, errors_;
  NonBlockingOutput own_output_, own_errors_;  // used if output_ or errors_ is empty
  bool terminal_, color_;
  int columns_;
  std::string live_;
};

}  // namespace sinew::report
