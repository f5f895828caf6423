// Code whose files must survive a crash takes a Disk as an argument. A test passes a Disk that fails any call, cuts a
// write short, or counts the calls.
//
// Every method throws DiskError with the errno of the failure; none retries after a failure. Any thread may call any
// method. The methods that read refuse everything but regular files, because opening a pipe or a device could block.
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
  // An open file for writing. close() does not sync.
  class File {
   public:
    virtual ~File() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;  // all of them; if it throws, some may be in the file
    // Writes at least one of the bytes and returns how many. If it throws, it has written none.
    virtual size_t write_some(std::span<const std::byte> bytes) {
      write(bytes);
      return bytes.size();
    }
    // fsync. If it fails, write a new file: a later sync of the same file may succeed although the bytes were lost.
    virtual void sync() = 0;
    virtual void close() = 0;
  };
  struct Entry {
    std::string name;
    bool directory = false;
  };

  virtual ~Disk() = default;
  virtual std::unique_ptr<File> create(const std::string& path) = 0;  // truncates
  // Creates a file that does not exist yet. The system's disk fails if this name exists, even as a dangling link. So
  // nobody who may write to the directory can redirect the bytes. Other disks may replace an existing file.
  virtual std::unique_ptr<File> create_new(const std::string& path) { return create(path); }
  // Opens a file that grows, and creates it if it does not exist.
  virtual std::unique_ptr<File> append(const std::string& path) = 0;
  virtual std::vector<std::byte> read(const std::string& path) = 0;
  // Fills `out` from `offset` on and returns the number of bytes read, which is below out.size() only at the file's
  // end.
  virtual size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out);
  virtual std::vector<Entry> list(const std::string& directory) = 0;  // sorted by name, without . and ..
  // Returns false only if nothing has this name. Throws if the caller has no permission to find out.
  virtual bool exists(const std::string& path) = 0;
  virtual uint64_t size(const std::string& path) = 0;
  virtual void make_directories(const std::string& path) = 0;
  // Makes one directory, in a directory that exists. Throws DiskError with EEXIST if the name exists: of several
  // processes, one makes it.
  virtual void make_directory(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // atomic replace
  virtual void symlink(const std::string& target, const std::string& path) = 0;
  virtual void remove_file(const std::string& path) = 0;  // succeeds if the file does not exist
  // succeeds if the path does not exist; removes links, not their targets
  virtual void remove_all(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  // Asks the kernel to drop its cached pages of the file, so that the next read comes from the device. It has no effect
  // on pages that were not synced, and none on a file system in memory.
  virtual void drop_cache(const std::string& path) = 0;
  // Returns the path at which a caller prepares a file, link or directory before it renames it into place, or to which
  // it moves what it is about to remove. `hidden` is a hidden name beside the final one, which nothing else uses. The
  // path is `hidden` itself, except on a WriteFence (base/write_fence.h).
  virtual std::string staging(const std::string& hidden) { return hidden; }
};

// The disk of this machine.
Disk& system_disk();

// Replaces the whole file, atomically and durably: writes a temporary file beside it (or where Disk::staging says),
// syncs it, renames it and syncs the parent directory. Each call uses a temporary name of its own, so two writers of
// one path cannot mix their bytes. A call that fails removes its temporary file.
void write_durably(Disk& disk, const std::string& path, std::span<const std::byte> bytes);
void write_durably(Disk& disk, const std::string& path, std::string_view text);
void write_durably(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill);
// Removes the temporary files that killed processes left in this directory during write_durably. Keeps those of
// processes that live on this machine. So processes of other machines must not write to the directory meanwhile. Throws
// DiskError if the directory cannot be read. Skips a file that cannot be removed.
void remove_abandoned_writes(Disk& disk, const std::string& directory);
// Writes a file that the user named. Writes into a device, pipe or socket, such as /dev/null or /dev/fd/63, because
// replacing it would destroy it. Replaces any other file as write_durably does.
void write_output(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill);
void write_output(Disk& disk, const std::string& path, std::string_view text);

// Reads the whole file as a string, whatever bytes it holds.
std::string read_text(Disk& disk, const std::string& path);

// Copies the bytes [begin, end) of a file to the end of another, piece by piece.
void copy_bytes(Disk& disk, const std::string& from, uint64_t begin, uint64_t end, Disk::File& to);

// Creates the missing directories of the path and makes all names on the path durable. This includes the names of
// existing directories, because their creator may have died before it synced the parent.
void make_directories_durably(Disk& disk, const std::string& path);

}  // namespace sinew
