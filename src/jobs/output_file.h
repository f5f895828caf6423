// Writes the output of a command to files of limited size.
//
// There are two files. The class writes to NAME; NAME.1 has the output before it. When NAME is full, it replaces
// NAME.1. This happens between two lines, so a file can exceed the limit by the rest of a line. If the file would reach
// twice the limit, the class cuts the line, so no file is larger than that. A full disk loses output but never ends the
// run. The class counts the bytes that it could not write. These include bytes for which there is no room because a
// renaming failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinew::jobs {

class OutputFile {
 public:
  explicit OutputFile(std::string path, uint64_t most_bytes = 16 << 20);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(std::string_view bytes) noexcept;
  uint64_t lost_bytes() const { return lost_; }

 private:
  bool open();
  bool rotate();

  std::string path_;
  uint64_t most_, size_ = 0, lost_ = 0;
  int descriptor_ = -1;
  char last_ = '\n';
};

struct Line {
  std::string_view text;     // without the line end
  bool overwritten = false;  // the line ended with '\r', so the next line replaces it, as in a progress bar
};

// Splits a stream into lines. Gives a line longer than `most` bytes in pieces, so that the memory is limited. Both
// "\r\n" and "\n" end a line.
class LineSplitter {
 public:
  explicit LineSplitter(size_t most = 1 << 20) : most_(most) {}
  // Calls visit(Line) for each complete line.
  template <typename Visit>
  void add(std::string_view bytes, Visit visit) {
    for (size_t end = 0; !bytes.empty(); bytes.remove_prefix(std::min(end, bytes.size() - 1) + 1)) {
      end = bytes.find_first_of("\r\n");
      if (returned_ && end != 0 && !rest_.empty()) give(visit, true);
      rest_.append(bytes.substr(0, end));
      returned_ = end != std::string_view::npos && bytes[end] == '\r';
      if (end != std::string_view::npos && !returned_) give(visit, false);
    }
    if (rest_.size() > most_) give(visit, false);
  }
  // Visits the text after the last line end. Call it at the end of the stream.
  template <typename Visit>
  void finish(Visit visit) {
    if (!rest_.empty()) give(visit, false);
  }

 private:
  template <typename Visit>
  void give(Visit& visit, bool overwritten) {
    visit(Line{rest_, overwritten});
    rest_.clear();
  }

  size_t most_;
  std::string rest_;
  bool returned_ = false;  // the newest byte is '\r'; the next byte decides whether it ends the line
};

}  // namespace sinew::jobs
