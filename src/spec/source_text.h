// Checks the text of a job file and splits it into lines. Private to spec/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// The lines of one file while it is read, by one thread.
class SourceText {
 public:
  explicit SourceText(std::string_view text);

  // Finds what no job file may contain: invalid UTF-8, control characters, tabs in the indentation, or too many bytes.
  std::vector<Finding> check() const;

  int line_count() const { return static_cast<int>(lines_.size()); }
  std::string_view line(int number) const;  // 1-based, without its line end; "" if there is no such line
  // The position of a 0-based line and byte column, as the YAML library counts.
  Position position(int line, int column) const;
  std::string_view rest_of_line(int line, int column) const;  // 0-based, in bytes

 private:
  std::string_view text_;
  std::vector<std::string_view> lines_;
  // Caches the last position that was computed. The next position is usually further right on the same line, and a line
  // may hold a list of thousands of items.
  struct Counted {
    int line_index = -1;
    size_t bytes = 0;
    int characters = 0;
  };
  mutable Counted counted_;
};

}  // namespace sinew::spec
