// The two streams a person or a log collector watches. On a terminal one live line stays at the bottom and messages
// pass above it; elsewhere everything is whole lines and '\r' never appears.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "report/report.h"
#include "report/watched.h"

namespace sinew::report {

class Screen {
 public:
  explicit Screen(const ReporterOptions& options);

  int columns() const;                               // room for the live line
  void live(std::string text);                       // replaces the live line; terminal only
  void line(std::string_view text);                  // one whole line on stdout
  void message(Level level, std::string_view text);  // for people: warnings and errors on stderr
  void pass_on(std::string_view text, bool errors);  // somebody else's line, as it is
  void end_live();                                   // the live line stays as it is and is done with

 private:
  void out(std::string_view text);
  void err(std::string_view text);

  std::function<void(std::string_view)> output_, errors_;
  Watched own_output_, own_errors_;  // where nobody else takes it
  bool terminal_, color_;
  int columns_;
  std::string live_;
};

}  // namespace sinew::report
