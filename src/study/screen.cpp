#include "study/screen.h"

#include <utility>

namespace sinew::study {

StudyScreen::StudyScreen(std::function<void(std::string_view)> write, std::function<TerminalSize()> size)
    : write_(std::move(write)), size_(std::move(size)), terminal_(size_().columns > 0) {}

// Returns the control sequence that moves the cursor to the first line of the table and erases everything below; empty
// if there is no table.
std::string StudyScreen::erased() const {
  return table_.empty() ? "" : "\r\x1b[" + std::to_string(table_.size()) + "A\x1b[J";
}

void StudyScreen::say(const std::string& text) {
  std::string all = erased() + text + "\n";
  for (const std::string& line : table_) all += line + "\n";
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
