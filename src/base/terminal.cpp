#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace sinew {
namespace {

constexpr int kMostColumns = 10'000;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the value of COLUMNS, or 0 if it is no number of columns.
int columns_wanted() {
  const std::string_view text = variable("COLUMNS");
  int columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool number = error == std::errc() && end == text.data() + text.size();
  return number && columns > 0 && columns <= kMostColumns ? columns : 0;
}

}  // namespace

Terminal terminal_of(int descriptor) {
  if (::isatty(descriptor) != 1) return {};
  const std::string_view kind = variable("TERM");
  Terminal terminal;
  terminal.present = true;
  terminal.moves_cursor = !kind.empty() && kind != "dumb";
  terminal.color = terminal.moves_cursor && variable("NO_COLOR").empty();
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    terminal.columns = size.ws_col;
    terminal.rows = size.ws_row;
  }
  if (const int wanted = columns_wanted(); wanted > 0) terminal.columns = wanted;
  return terminal;
}

int usable_columns(const Terminal& terminal) {
  return terminal.columns > 0 ? std::max(1, terminal.columns - 1) : 0;
}

bool a_person_types() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace sinew
