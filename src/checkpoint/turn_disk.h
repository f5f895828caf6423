// Inside checkpoint/: the Writer's disk. It checks that this process may write before each change that other processes
// can see.
//
// Two processes may both believe that they run the job, but only one at a time may write; a lease, for example, decides
// which. Every visible change in this module is a rename: a step directory appears or moves behind a hidden name, or
// `last` or `best` changes. So a check before each rename is enough, however long the preceding work took. Hidden files
// belong to this process alone and need no check.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"

namespace sinew::checkpoint {

class TurnDisk final : public Disk {
 public:
  TurnDisk(Disk& disk, std::function<bool()> may_write) : disk_(disk), may_write_(std::move(may_write)) {}

  // Throws Error if this process may not write. The Writer also calls this before work that would end in a rename.
  void ask() const {
    look();
    if (may_write_ && !may_write_()) throw Error("not this process's turn to write");
  }
  // After this, every call throws before it uses the underlying disk or `may_write`. Any thread may call it.
  void close() { closed_ = true; }
  void rename(const std::string& from, const std::string& to) override {
    ask();
    disk_.rename(from, to);
  }

  std::unique_ptr<File> create(const std::string& path) override { return below().create(path); }
  std::unique_ptr<File> append(const std::string& path) override { return below().append(path); }
  std::vector<std::byte> read(const std::string& path) override { return below().read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return below().read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return below().list(directory); }
  bool exists(const std::string& path) override { return below().exists(path); }
  uint64_t size(const std::string& path) override { return below().size(path); }
  void make_directories(const std::string& path) override { below().make_directories(path); }
  void symlink(const std::string& target, const std::string& path) override { below().symlink(target, path); }
  void remove_file(const std::string& path) override { below().remove_file(path); }
  void remove_all(const std::string& path) override { below().remove_all(path); }
  void sync_directory(const std::string& path) override { below().sync_directory(path); }
  void drop_cache(const std::string& path) override { below().drop_cache(path); }

 private:
  void look() const {
    if (closed_) throw Error("given up: it took too long");
  }
  Disk& below() const {
    look();
    return disk_;
  }

  Disk& disk_;
  std::function<bool()> may_write_;
  std::atomic<bool> closed_{false};
};

}  // namespace sinew::checkpoint
