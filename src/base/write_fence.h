// The disk of a writer of a run directory. Once another writer has taken over, this disk changes nothing any more.
//
// A process may be suspended for any time between the moment at which it checks that it may write and the write itself.
// So a check, however late, cannot keep two processes from writing one run. A WriteFence makes the check a part of each
// write, by what the file system does anyway:
//
// - Each writer has a directory of its own, <run directory>/.writers/N/. A later writer has a higher N.
// - A writer prepares everything that it puts into the run directory in its own directory, and then renames it into
//   place. Before a writer removes something there, it renames it into its own directory. A file that grows is replaced
//   by a copy, which only this writer has open.
// - A writer that takes over renames the directories of all earlier writers away and removes them, before it reads
//   anything. From then on, each rename of an earlier writer fails with ENOENT, and so does its next new file. A file
//   that it still has open has lost its name to the new writer's copy, so no reader sees what it appends.
//
// ENOENT is how a writer learns that it was replaced (WriterReplaced).
//
// The fence relies on these properties of the file system, which ext4, XFS, btrfs, tmpfs and NFS have:
// 1. A rename within the file system, also between two directories, happens as a whole or not at all.
// 2. mkdir of a name that exists fails. A directory that was removed takes no new name, although a process is already
//    inside a call that names it: rename and creation fail with ENOENT (ESTALE on NFS). On NFS, a directory cannot be
//    removed while a process of the same machine has a file in it open; a takeover then fails, and is tried again.
// 3. A file that is open and has no name left can be written, and no name leads to these bytes.
// 4. After a crash of the machine, a rename between two directories is there as a whole or not at all, and the sync of
//    either directory makes it durable as a whole. (The journals of ext4 and XFS hold a rename as one transaction.)
//    Otherwise, after a crash a durable checkpoint could still have a name in its writer's directory, and the next
//    writer would remove it together with that directory.
// 5. The whole run directory is on one file system.
//
// The fence costs no sync in a step. A sync comes with each copy of a growing file, when a writer takes over.
//
// Changes of paths outside of the run directory pass through unchanged. mkdir passes through as well: an empty
// directory changes nothing for a reader. The fence judges the names of paths, so all paths must begin with the
// directory's path.
//
// A writer begins by take_over(), or by its first change, which calls take_over(). This first call comes from one
// thread; after it, any thread may call any method.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/error.h"

namespace sinew {

// Another writer has taken over the run directory (CHECKPOINT_MAY_NOT_WRITE), or a user has removed this writer's
// directory (RUN_DIRECTORY_LOST). This writer can never write there again. It is no MayNotWrite, because who catches
// that waits for the right to write, or tries again later.
struct WriterReplaced : Error {
  using Error::Error;
};

class WriteFence final : public Disk {
 public:
  static constexpr const char* kDirectory = ".writers";

  // The disk of writer `number`. The number is the id of a member of a group, or free_number() for a process that is
  // alone. `disk` must outlive this object.
  WriteFence(Disk& disk, const std::string& run_directory, int64_t number);

  // The highest number that a writer of the directory has had, or 0.
  static int64_t highest_number(Disk& disk, const std::string& run_directory);
  // The number for a process that holds the run's lock and is no member of a group.
  static int64_t free_number(Disk& disk, const std::string& run_directory) {
    return highest_number(disk, run_directory) + 1;
  }

  // Ends the right to write of all earlier writers. Does nothing if this writer has taken over before. Throws
  // WriterReplaced if a later writer has taken over, and DiskError. If it throws DiskError, it can be called again.
  void take_over();
  // For a process that holds the run's lock after its group has ended: if this writer has not taken over or was
  // replaced, takes over under a free number. Returns whether it did. No other thread may use this object meanwhile.
  bool take_over_again();
  // Returns whether this writer has taken over. Any thread.
  bool has_taken_over() const { return taken_over_; }
  // Throws WriterReplaced if another writer has taken over since. Looks at the disk. Any thread.
  void check();

  std::unique_ptr<File> create(const std::string& path) override;
  std::unique_ptr<File> create_new(const std::string& path) override;
  // Replaces the file by a copy that only this writer has open, and returns the open copy. The copy is durable before
  // it gets the file's name.
  std::unique_ptr<File> append(const std::string& path) override;
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void symlink(const std::string& target, const std::string& path) override;
  void remove_file(const std::string& path) override;
  void remove_all(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::string staging(const std::string& hidden) override;

  std::vector<std::byte> read(const std::string& path) override { return disk_.read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return disk_.read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return disk_.list(directory); }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  uint64_t size(const std::string& path) override { return disk_.size(path); }
  void make_directory(const std::string& path) override { disk_.make_directory(path); }
  void drop_cache(const std::string& path) override { disk_.drop_cache(path); }

 private:
  enum class Place { outside, own, run };  // outside of the run directory, in this writer's own directory, elsewhere
  Place place_of(const std::string& path) const;
  void make(const std::string& path, const std::function<void()>& change);
  void make_own_directory();
  void remove_writer(const std::string& name);
  void move_away(const std::string& path, const std::function<void(const std::string& away)>& remove);
  void act(const std::function<void()>& change);
  bool later_writer_exists() const;
  [[noreturn]] void fail_replaced();

  Disk& disk_;
  const std::string run_;      // normalised path of the run directory
  const std::string writers_;  // the path of .writers/
  int64_t number_;
  std::string own_;
  bool made_ = false;  // true: this object has made its own directory
  std::atomic<bool> taken_over_{false}, replaced_{false};
  std::atomic<uint64_t> names_{0};  // how many names for files to be removed this writer has used
};

}  // namespace sinew
