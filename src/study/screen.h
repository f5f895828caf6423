// Shows a study that runs: lines that say what happened, and below them, on a terminal, a table of what runs and what
// was best so far.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::study {

struct TerminalSize {
  int columns = 0, rows = 0;  // 0: no terminal, or none that can move its cursor
};

class StudyScreen {
 public:
  // `write` gets the bytes that go out; `size` says how large the terminal is now.
  StudyScreen(std::function<void(std::string_view)> write, std::function<TerminalSize()> size);
  TerminalSize size() const { return size_(); }

  void say(const std::string& text);          // adds a line above the table
  void show(std::vector<std::string> table);  // replaces the table; does nothing where there is no terminal
  void end();                                 // removes the table

 private:
  std::string erased() const;

  std::function<void(std::string_view)> write_;
  std::function<TerminalSize()> size_;
  bool terminal_;
  std::vector<std::string> table_;
};

}  // namespace sinew::study
