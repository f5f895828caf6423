// Inside report/: a file to which complete records are appended. Appending never fails and never waits for the disk.
//
// If the disk is full, the directory is missing or the file system is read-only, AppendFile keeps records in memory.
// Beyond 8 MiB it drops new records and counts them. Every flush continues at the byte where the last write stopped, so
// no record that was kept is lost once there is space again. AppendFile also keeps records in memory while `may_write`
// returns false.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sinew::report {

class AppendFile {
 public:
  // The first flush opens the file and creates it if necessary. AppendFile calls `may_write` before each write;
  // `may_write` must not throw. If it is empty, the process may always write.
  explicit AppendFile(std::string path, std::function<bool()> may_write = nullptr)
      : path_(std::move(path)), may_write_(std::move(may_write)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // does not flush: may_write may use parts of the owner that are destroyed already

  void append(std::string_view record);
  void flush() noexcept;  // passes the waiting records to the kernel, as far as it accepts them
  // Stores an error that the caller has found, so that trouble() returns it.
  void fail(std::string why) { other_trouble_ = std::move(why); }
  std::string trouble() const;  // empty if every appended record is in the file
  // Returns whether records wait because may_write returned false at the last flush.
  bool waits_for_permission() const { return refused_ && !waiting_.empty(); }
  const std::string& path() const { return path_; }

 private:
  bool open();

  std::string path_, waiting_, other_trouble_;
  std::function<bool()> may_write_;
  bool refused_ = false;  // true: may_write returned false when it was called last
  int descriptor_ = -1;
  int code_ = 0;  // errno of the last attempt to write; 0 if it succeeded
  std::string why_dropped_;
  int64_t dropped_ = 0;
};

}  // namespace sinew::report
