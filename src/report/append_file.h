// A file that only grows, by whole records, and never troubles the one who writes to it.
//
// A full disk, a lost directory or a read-only file system keeps records waiting in memory (up to a bound, then new
// ones are dropped and counted); every flush tries again from the very byte where the last write stopped, so the file
// is whole again when space returns. The same while it is not this process's turn to write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sinew::report {

class AppendFile {
 public:
  // Opened, and created, by the first flush. `may_write` is asked before each write and must not throw; empty: always.
  explicit AppendFile(std::string path, std::function<bool()> may_write = nullptr)
      : path_(std::move(path)), may_write_(std::move(may_write)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // does not flush: whoever owns the file may be half gone already

  void append(std::string_view record);
  void flush() noexcept;  // what waits goes to the kernel, as far as it will take it
  void fail(std::string why) {
    other_trouble_ = std::move(why);
  }                                                 // a trouble found elsewhere, shown with this file's own
  std::string trouble() const;                      // empty: everything appended is in the file
  bool waits() const { return !waiting_.empty(); }  // for a flush that can write
  const std::string& path() const { return path_; }

 private:
  bool open();

  std::string path_, waiting_, other_trouble_;
  std::function<bool()> may_write_;
  bool refused_ = false;  // the last attempt was not this process's turn
  int descriptor_ = -1;
  int code_ = 0;  // errno of the last failed attempt; 0: none
  std::string why_dropped_;
  int64_t dropped_ = 0;
};

}  // namespace sinew::report
