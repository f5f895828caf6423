// The disk as an argument: what durable rooms may do to files, so that tests can fail, cut or count every call.
//
// Every method throws DiskError with the system's code when it fails; none retries. Any thread may call. Only regular
// files are read: a pipe or a device in a file's place is refused instead of waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sinew {

struct DiskError : Error {
  DiskError(const std::string& what, std::string hint, int errno_value)
      : Error(code_of(errno_value), what, std::move(hint)), system_code(errno_value) {}
  int system_code;  // errno

  static ErrorCode code_of(int errno_value);  // DISK_FULL, DISK_NO_FILE, DISK_NOT_PERMITTED or DISK_FAILED
};

class Disk {
 public:
  // A file being written; closing does not sync.
  class File {
   public:
    virtual ~File() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;
    // fsync. After it failed the file can not be trusted again, whatever a later sync says: write another one.
    virtual void sync() = 0;
    virtual void close() = 0;
  };
  struct Entry {
    std::string name;
    bool directory = false;
  };

  virtual ~Disk() = default;
  virtual std::unique_ptr<File> create(const std::string& path) = 0;  // truncates
  virtual std::unique_ptr<File> append(const std::string& path) = 0;
  virtual std::vector<std::byte> read(const std::string& path) = 0;
  // Fills `out` from `offset` on and returns how much there was, less than asked only at the end of the file.
  virtual size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out);
  virtual std::vector<Entry> list(const std::string& directory) = 0;  // sorted by name; without . and ..
  virtual bool exists(const std::string& path) = 0;  // false only if it is not there; not being allowed to look throws
  virtual uint64_t size(const std::string& path) = 0;
  virtual void make_directories(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // atomic replace
  virtual void symlink(const std::string& target, const std::string& path) = 0;
  virtual void remove_file(const std::string& path) = 0;  // no error if it is not there
  virtual void remove_all(const std::string& path) = 0;   // likewise; does not follow links
  virtual void sync_directory(const std::string& path) = 0;
  // Asks that the next read come from the device; only what was synced can be dropped, and a file system in memory has
  // no device.
  virtual void drop_cache(const std::string& path) = 0;
};

// The machine's own disk.
Disk& system_disk();

// Whole file, durable and atomic: temporary beside it, fsync, rename, fsync of the parent. The temporary's name is the
// call's own, so that two writers of one path can not mix their bytes; it is removed when the call fails.
void write_durably(Disk& disk, const std::string& path, std::span<const std::byte> bytes);
void write_durably(Disk& disk, const std::string& path, std::string_view text);
void write_durably(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill);

// The whole file as text, whatever bytes it holds.
std::string read_text(Disk& disk, const std::string& path);

// Makes the directories that are missing, and makes the names of all on the path durable: one found there may have been
// made by a process that died before it synced the parent.
void make_directories_durably(Disk& disk, const std::string& path);

}  // namespace sinew
