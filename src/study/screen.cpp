#include "study/screen.h"

#include <utility>

#include "report/report.h"

namespace sinew::study {

StudyScreen::StudyScreen(std::function<void(std::string_view)> write, std::function<TerminalSize()> size)
    : write_(std::move(write)), size_(std::move(size)), terminal_(size_().columns > 0) {}

// Returns the control sequence that moves the cursor to the first line of the table and erases everything below; empty
// if there is no table. If the window has become narrower since the table was drawn, the terminal has broken its lines
// into several rows.
std::string StudyScreen::erased() const {
  if (table_.empty()) return "";
  const int columns = size_().columns;
  int rows = 0;
  for (const std::string& line : table_) rows += report::rows_of(line, columns);
  return "\r\x1b[" + std::to_string(rows) + "A\x1b[J";
}

void StudyScreen::say(const std::string& text) {
  std::string all = erased() + text + "\n";
  const int columns = size_().columns;
  for (std::string& line : table_) {
    if (columns > 0) line = report::fit(line, columns - 1);  // the window may be narrower than when the table was made
    all += line + "\n";
  }
  write_(all);
}

void StudyScreen::show(std::vector<std::string> table) {
  if (!terminal_ || table == table_) return;
  std::string all = erased();
  for (const std::string& line : table) all += line + "\n";
  table_ = std::move(table);
  write_(all);
}

void StudyScreen::end() {
  if (!table_.empty()) write_(erased());
  table_.clear();
}

}  // namespace sinew::study
