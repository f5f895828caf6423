// Inside report/: a file that grows by complete records. Appending never fails and never waits.
//
// On a full disk, a missing directory or a read-only file system, AppendFile keeps records in memory. Beyond 8 MiB it
// drops new records and counts them. Every flush continues at the byte where the last write stopped, so the file is
// complete once space returns. AppendFile also keeps records in memory while `may_write` returns false.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sinew::report {

class AppendFile {
 public:
  // The first flush creates and opens the file. AppendFile calls `may_write` before each write; it must not throw. If
  // `may_write` is empty, the process may always write.
  explicit AppendFile(std::string path, std::function<bool()> may_write = nullptr)
      : path_(std::move(path)), may_write_(std::move(may_write)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // does not flush, because may_write may use parts of the owner that are already destroyed

  void append(std::string_view record);
  void flush() noexcept;  // passes the waiting records to the kernel, as far as the kernel accepts them
  // Stores an error that the caller found, so that trouble() shows it.
  void fail(std::string why) { other_trouble_ = std::move(why); }
  std::string trouble() const;  // empty if every appended record is in the file
  // Whether some records are not written because may_write was false at the last flush.
  bool waits_for_permission() const { return refused_ && !waiting_.empty(); }
  const std::string& path() const { return path_; }

 private:
  bool open();

  std::string path_, waiting_, other_trouble_;
  std::function<bool()> may_write_;
  bool refused_ = false;  // true: may_write returned false when it was last asked
  int descriptor_ = -1;
  int code_ = 0;  // errno of the last attempt; 0 if it succeeded
  std::string why_dropped_;
  int64_t dropped_ = 0;
};

}  // namespace sinew::report
