// A disk that checks, before each change that other processes can see, that this process still has the right to write.
// The checkpoint writer and the code that ends a run use it.
//
// Two processes may both believe that they run the job, but only one at a time may write; a lease, for example, decides
// which. The check keeps a process from writing while it has no lease. The WriteFence (base/write_fence.h), which is
// below this disk in a run, deals with a process that is suspended between the check and the change. Every visible
// change that the callers make is a rename or a removal: a file or a step directory appears, disappears or gets a
// hidden name, or `last` or `best` changes. So it is enough to check before each rename and before each removal of a
// visible name, however long the work before it took. Names that begin with a dot are hidden and belong to this process
// alone. Their removal needs no check: a process that has lost the right to write still removes its own hidden files.
//
// The path itself may lead to a directory that belongs to somebody else. Then the process must not even create hidden
// files. Checks::creations therefore checks before each creation, too.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/error.h"

namespace sinew {

// This process may not write now. It may later.
struct MayNotWrite : Error {
  using Error::Error;
};

class FencedDisk final : public Disk {
 public:
  enum class Checks { changes, creations };
  FencedDisk(Disk& disk, std::function<bool()> may_write, Checks checks = Checks::changes)
      : disk_(disk), may_write_(std::move(may_write)), checks_(checks) {}

  // Throws MayNotWrite if this process must not write. The checkpoint writer also calls it before long work, so that
  // the work does not fail at its final rename.
  void check_may_write() const {
    check_open();
    if (may_write_ && !may_write_())
      throw MayNotWrite("CHECKPOINT_MAY_NOT_WRITE",
                        "this process may not write now: the coordinator has not confirmed that it still runs the job",
                        "look at the run with: sinew ps");
  }
  // From now on, every call throws before it uses the underlying disk or `may_write`. Any thread may call close().
  void close() { closed_ = true; }
  void rename(const std::string& from, const std::string& to) override {
    check_may_write();
    disk_.rename(from, to);
  }
  void remove_file(const std::string& path) override {
    if (!is_hidden(path)) check_may_write();
    disk().remove_file(path);
  }
  void remove_all(const std::string& path) override {
    if (!is_hidden(path)) check_may_write();
    disk().remove_all(path);
  }

  std::unique_ptr<File> create(const std::string& path) override { return for_creation().create(path); }
  std::unique_ptr<File> create_new(const std::string& path) override { return for_creation().create_new(path); }
  std::unique_ptr<File> append(const std::string& path) override { return for_creation().append(path); }
  std::vector<std::byte> read(const std::string& path) override { return disk().read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return disk().read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return disk().list(directory); }
  bool exists(const std::string& path) override { return disk().exists(path); }
  uint64_t size(const std::string& path) override { return disk().size(path); }
  void make_directories(const std::string& path) override { for_creation().make_directories(path); }
  void make_directory(const std::string& path) override { for_creation().make_directory(path); }
  void symlink(const std::string& target, const std::string& path) override { for_creation().symlink(target, path); }
  void sync_directory(const std::string& path) override { disk().sync_directory(path); }
  void drop_cache(const std::string& path) override { disk().drop_cache(path); }
  std::string staging(const std::string& hidden) override { return disk().staging(hidden); }

 private:
  static bool is_hidden(std::string_view path) {
    while (path.ends_with('/')) path.remove_suffix(1);
    return path.substr(path.rfind('/') + 1).starts_with('.');  // without a slash, the whole path is the name
  }
  void check_open() const {
    if (closed_) throw Error("CHECKPOINT_GIVEN_UP", "given up, because it took too long", "");
  }
  Disk& disk() const {
    check_open();
    return disk_;
  }
  Disk& for_creation() const {
    if (checks_ == Checks::creations) check_may_write();
    return disk();
  }

  Disk& disk_;
  std::function<bool()> may_write_;
  const Checks checks_;
  std::atomic<bool> closed_{false};
};

}  // namespace sinew
