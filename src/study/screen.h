// Shows a running study: lines about what happens and, on a terminal, a table of its trials below them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::study {

struct TerminalSize {
  int columns = 0, rows = 0;  // 0: there is no terminal, or it cannot move its cursor
};

class StudyScreen {
 public:
  // `write` receives the bytes to output; `size` gives the current size of the terminal.
  StudyScreen(std::function<void(std::string_view)> write, std::function<TerminalSize()> size);
  bool terminal() const { return terminal_; }
  TerminalSize size() const { return size_(); }

  void say(const std::string& text);          // adds a line above the table
  void show(std::vector<std::string> table);  // replaces the table; without a terminal it does nothing
  void end();                                 // removes the table

 private:
  std::string erased() const;

  std::function<void(std::string_view)> write_;
  std::function<TerminalSize()> size_;
  bool terminal_;
  std::vector<std::string> table_;
};

}  // namespace sinew::study
