// What a command prints, kept within bounds: when the file is full its older half is let go of, whole lines at a time.
//
// Two files: NAME is being written, NAME.1 is what was written before it. Together at most twice the bound. A full disk
// costs output and never the run: what could not be written is counted, and so is what a full file has no room for when
// it can not be put aside.
#pragma once

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

// A stream cut into lines; one longer than `most` comes in pieces, so memory is bounded.
class LineCutter {
 public:
  explicit LineCutter(size_t most = 1 << 20) : most_(most) {}
  // Calls visit(std::string_view line) for each that is complete, without its newline.
  template <typename Visit>
  void add(std::string_view bytes, Visit visit) {
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      rest_.append(bytes.substr(0, end));
      visit(std::string_view(rest_));
      rest_.clear();
    }
    rest_.append(bytes);
    if (rest_.size() <= most_) return;
    visit(std::string_view(rest_));
    rest_.clear();
  }
  // What stands behind the last newline, at the end of the stream.
  template <typename Visit>
  void finish(Visit visit) {
    if (!rest_.empty()) visit(std::string_view(rest_));
    rest_.clear();
  }

 private:
  size_t most_;
  std::string rest_;
};

}  // namespace sinew::jobs
