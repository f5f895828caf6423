// The disk as an argument: what durable rooms may do to files, so that tests can fail, cut or count every call.
//
// Every method throws DiskError with the system's code when it fails; none retries. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace sinew {

struct DiskError : Error {
  DiskError(const std::string& what, std::string hint, int code) : Error(what, std::move(hint)), code(code) {}
  int code;  // errno
};

class Disk {
 public:
  // A file being written; closing does not sync.
  class File {
   public:
    virtual ~File() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;
    virtual void sync() = 0;  // fsync
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
  virtual std::vector<Entry> list(const std::string& directory) = 0;  // sorted by name; without . and ..
  virtual bool exists(const std::string& path) = 0;
  virtual uint64_t size(const std::string& path) = 0;
  virtual void make_directories(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // atomic replace
  virtual void symlink(const std::string& target, const std::string& path) = 0;
  virtual void remove_file(const std::string& path) = 0;
  virtual void remove_all(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  virtual void drop_cache(const std::string& path) = 0;  // the next read comes from the device
};

// The machine's own disk.
Disk& system_disk();

// Whole file, durable and atomic: temporary beside it, fsync, rename, fsync of the parent.
void write_durably(Disk& disk, const std::string& path, std::span<const std::byte> bytes);

}  // namespace sinew
