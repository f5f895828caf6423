// Inside report/: a file to which complete records are appended. Appending never fails and never waits for the disk.
//
// If the disk is full, the directory is missing or the file system is read-only, AppendFile keeps records in memory.
// Beyond 8 MiB it drops new records and counts them. Every flush continues at the byte where the last write stopped, so
// no record that was kept is lost once there is space again. AppendFile also keeps records in memory while `may_write`
// returns false.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/disk.h"

namespace sinew::report {

class AppendFile {
 public:
  // Opens the file that an earlier attempt or another process wrote, at its end, or returns null if there is none.
  using GoOn = std::function<std::unique_ptr<Disk::File>()>;

  // The first flush that may write calls `go_on`, even if no record waits. If `go_on` throws DiskError, the next flush
  // calls it again. If there is no file, the first record creates it. AppendFile calls `may_write` before each write;
  // `may_write` must not throw. If it is empty, the process may always write.
  AppendFile(Disk& disk, std::string path, std::function<bool()> may_write = nullptr, GoOn go_on = nullptr)
      : disk_(disk), path_(std::move(path)), may_write_(std::move(may_write)), go_on_(std::move(go_on)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  // The destructor does not flush: may_write may use parts of the owner that are destroyed already.

  void append(std::string_view record);
  // Passes the waiting records to the kernel, as far as it accepts them. Throws WriterReplaced if the file belongs to
  // another writer now (base/write_fence.h). Throws no other error of the disk: trouble() returns it.
  void flush();
  // Stores an error that the caller has found, so that trouble() returns it.
  void fail(std::string why) { other_trouble_ = std::move(why); }
  std::string trouble() const;  // empty if every appended record is in the file
  // Returns whether records wait because may_write returned false at the last flush.
  bool waits_for_permission() const { return refused_ && !waiting_.empty(); }
  // Returns whether the file could not be opened at the last flush, because may_write returned false.
  bool waits_to_go_on() const { return refused_ && go_on_; }
  const std::string& path() const { return path_; }

 private:
  Disk& disk_;
  std::string path_, waiting_, other_trouble_;
  std::function<bool()> may_write_;
  GoOn go_on_;  // null once it has succeeded
  std::unique_ptr<Disk::File> file_;
  bool refused_ = false;  // true: may_write returned false when it was called last
  std::string failure_;   // the error of the last attempt to write; empty if it succeeded
  std::string why_dropped_;
  int64_t dropped_ = 0;
};

}  // namespace sinew::report
