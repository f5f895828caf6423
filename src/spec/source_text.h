// Checks the text of a job file and splits it into lines. Private to spec/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// For one reading of a file, on one thread.
class SourceText {
 public:
  explicit SourceText(std::string_view text);

  // Finds bytes that no job file may hold: invalid UTF-8, control characters, tabs in the indentation, or too many
  // bytes.
  std::vector<Finding> check() const;

  int line_count() const { return static_cast<int>(lines_.size()); }
  std::string_view line(int number) const;  // 1-based, without its line end; "" if there is no such line
  // The position of a 0-based line and byte column, as the YAML library counts.
  Position position(int line, int column) const;
  std::string_view rest_of_line(int line, int column) const;  // 0-based, in bytes

 private:
  std::string_view text_;
  std::vector<std::string_view> lines_;
  // Caches the position that was computed last. The next one is usually further right on the same line, which may hold
  // a list of thousands of items.
  struct Counted {
    int line_index = -1;
    size_t bytes = 0;
    int characters = 0;
  };
  mutable Counted counted_;
};

}  // namespace sinew::spec
