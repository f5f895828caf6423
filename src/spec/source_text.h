// The bytes of a job file, checked and cut into lines. Private to spec/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// Of one reading, in one thread.
class SourceText {
 public:
  explicit SourceText(std::string_view text);

  // Bytes that no job file holds: not UTF-8, control characters, tabs in the indentation, too many.
  std::vector<Finding> check() const;

  int line_count() const { return static_cast<int>(lines_.size()); }
  std::string_view line(int number) const;  // 1-based, without its end; "" outside
  // From 0-based line and byte column, as the YAML library counts, to a place.
  Place place(int line, int column) const;
  std::string_view rest_of_line(int line, int column) const;  // 0-based, bytes

 private:
  std::string_view text_;
  std::vector<std::string_view> lines_;
  // Where the place before was: the next one is mostly further on, and a line may hold a list of thousands.
  struct Counted {
    int line_index = -1;
    size_t bytes = 0;
    int characters = 0;
  };
  mutable Counted counted_;
};

}  // namespace sinew::spec
