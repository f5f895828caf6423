// What a person sees of a study while it goes on: lines that say what happened, and below them, on a terminal, a table
// of what runs and what was best so far.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/study_file.h"

namespace sinew::cli {

// A line on the whole, the best trials, those that run with their last value; no more than `rows` lines of less than
// `columns` characters. Pure.
std::vector<std::string> study_table(const tune::Study& study, const StudyHead& head, int64_t planned, double seconds,
                                     int columns, int rows);

class StudyScreen {
 public:
  // `write`: what goes out; standard output where it is empty. `terminal`: it can move the cursor up.
  explicit StudyScreen(bool terminal, std::function<void(std::string_view)> write = nullptr);
  bool terminal() const { return terminal_; }

  void say(const std::string& text);          // a line, above the table
  void show(std::vector<std::string> table);  // instead of the one before; on a terminal only
  void end();                                 // the table goes away

 private:
  void put(const std::string& text);
  std::string erased() const;

  bool terminal_;
  std::function<void(std::string_view)> write_;
  std::vector<std::string> table_;
};

struct TerminalSize {
  int columns = 0, rows = 0;  // 0: standard output is no terminal, or none that moves its cursor
};
TerminalSize terminal_size();

}  // namespace sinew::cli
