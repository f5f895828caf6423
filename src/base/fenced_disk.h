// A disk that checks that this process may write before each change that other processes can see. The checkpoint writer
// and the end of a run use it.
//
// Two processes may both believe that they run the job, but only one at a time may write; a lease, for example, decides
// which. Every visible change of the callers is a rename: a file or a step directory appears or moves behind a hidden
// name, or `last` or `best` changes. So a check before each rename is enough, however long the preceding work took.
// Hidden files belong to this process alone and need no check.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/error.h"

namespace sinew {

struct MayNotWrite : Error {
  using Error::Error;
};

class FencedDisk final : public Disk {
 public:
  FencedDisk(Disk& disk, std::function<bool()> may_write) : disk_(disk), may_write_(std::move(may_write)) {}

  // Throws MayNotWrite if this process may not write. The Writer also calls this before work that would end in a
  // rename.
  void check_may_write() const {
    check_open();
    if (may_write_ && !may_write_())
      throw MayNotWrite("CHECKPOINT_MAY_NOT_WRITE", "this process may not write: another one runs the job now", "");
  }
  // After this, every call throws before it uses the underlying disk or `may_write`. Any thread may call it.
  void close() { closed_ = true; }
  void rename(const std::string& from, const std::string& to) override {
    check_may_write();
    disk_.rename(from, to);
  }

  std::unique_ptr<File> create(const std::string& path) override { return disk().create(path); }
  std::unique_ptr<File> append(const std::string& path) override { return disk().append(path); }
  std::vector<std::byte> read(const std::string& path) override { return disk().read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return disk().read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return disk().list(directory); }
  bool exists(const std::string& path) override { return disk().exists(path); }
  uint64_t size(const std::string& path) override { return disk().size(path); }
  void make_directories(const std::string& path) override { disk().make_directories(path); }
  void symlink(const std::string& target, const std::string& path) override { disk().symlink(target, path); }
  void remove_file(const std::string& path) override { disk().remove_file(path); }
  void remove_all(const std::string& path) override { disk().remove_all(path); }
  void sync_directory(const std::string& path) override { disk().sync_directory(path); }
  void drop_cache(const std::string& path) override { disk().drop_cache(path); }

 private:
  void check_open() const {
    if (closed_) throw Error("CHECKPOINT_GIVEN_UP", "given up, because it took too long", "");
  }
  Disk& disk() const {
    check_open();
    return disk_;
  }

  Disk& disk_;
  std::function<bool()> may_write_;
  std::atomic<bool> closed_{false};
};

}  // namespace sinew
