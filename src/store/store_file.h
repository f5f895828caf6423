// Inside store/: notices that the file of an open SQLite store was removed or replaced. SQLite would go on with the
// file that it has open, and all further writes would be lost when the last process closes that file. Any thread may
// use it.
#pragma once

#include <atomic>
#include <string>

namespace sinew::store {

class StoreFile {
 public:
  // Remembers which files the path leads to now: the store's file and its WAL. Construct it when the store is open and
  // has written, so that both files exist.
  explicit StoreFile(std::string path);
  // Throws Error (STORE_REPLACED) if the path now leads to another file or to none. Costs two system calls.
  void check() const;
  // Returns the size of the store's file. Sets `shrunk` if the file was larger at an earlier call, unless accept() was
  // called since.
  int64_t size(bool& shrunk);
  // Tells this object that the file was found whole with this size, as after a VACUUM of another process.
  void accept(int64_t size);

 private:
  struct Identity {
    uint64_t device = 0, inode = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity_of(const std::string& path);  // zeros if there is no such file
  void check(const std::string& path, const Identity& opened) const;

  const std::string path_;
  const Identity store_, wal_;
  std::atomic<int64_t> largest_ = 0;
};

}  // namespace sinew::store
