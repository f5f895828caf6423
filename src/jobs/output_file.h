// What a command prints, kept within bounds: when the file is full its older half is let go of, whole lines at a time.
//
// Two files: NAME is being written, NAME.1 is what was written before it. Together at most twice the bound. A full disk
// costs output and never the run: what could not be written is counted, and so is what a full file has no room for when
// it can not be put aside.
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
  std::string_view text;  // without its end
  bool passing = false;   // it ended with '\r', as each state of a progress bar does: the next is written over it
};

// A stream cut into lines; one longer than `most` comes in pieces, so memory is bounded. "\r\n" is an end, too.
class LineCutter {
 public:
  explicit LineCutter(size_t most = 1 << 20) : most_(most) {}
  // Calls visit(Line) for each that is complete.
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
  // What stands behind the last end of a line, at the end of the stream.
  template <typename Visit>
  void finish(Visit visit) {
    if (!rest_.empty()) give(visit, false);
  }

 private:
  template <typename Visit>
  void give(Visit& visit, bool passing) {
    visit(Line{rest_, passing});
    rest_.clear();
  }

  size_t most_;
  std::string rest_;
  bool returned_ = false;  // a '\r' came last: what comes next tells whether it ended a line
};

}  // namespace sinew::jobs
