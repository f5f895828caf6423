// Inside the room: the Writer's disk, which asks whether it is this process's turn before anything others see.
//
// Of two processes that each believe they run the job, one at a time may write (a lease, say, decides). Everything here
// that others see is a rename: a step directory appears, goes behind a hidden name, `last` and `best` change over. So
// asking at each rename is enough, however long the work before it took; what is hidden is this process's own.
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

  // Throws Error when it is not this process's turn; also asked before work that would end in a rename.
  void ask() const {
    look();
    if (may_write_ && !may_write_()) throw Error("not this process's turn to write");
  }
  // From now on everything is refused, before the disk below or `may_write` is touched. Any thread.
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
