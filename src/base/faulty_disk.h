// For tests: a disk in memory. It can stop the process at any call, fail any call, corrupt synced data and lose
// unsynced data. base/cached_files.h describes what a crash loses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cached_files.h"
#include "base/disk.h"
#include "base/random.h"

namespace sinew {

// Thrown at the point where the process would die. It is not an Error, so code that handles errors does not catch it.
struct WorldStopped : std::exception {
  const char* what() const noexcept override { return "the world stopped"; }
};

class FaultyDisk final : public Disk {
 public:
  // ---- faults ------------------------------------------------------------------------------------------------------
  enum class When { before, after };
  void stop_world_at(int64_t call, When when) { stop_at_ = count_ + call, stop_when_ = when; }
  void fail_at(int64_t call, int code) { fail_at_ = count_ + call, fail_code_ = code; }
  void flip_media_bit_at_file_sync(int64_t sync) { lie_in_ = sync; }
  // Limits the disk to this many bytes. A write that would exceed the limit writes nothing and fails with ENOSPC.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t used() const {
    const std::lock_guard lock(mutex_);
    return files_.bytes();
  }
  // Hooks that run before the disk takes its lock, for instance to simulate a slow disk. before_call comes before each
  // call. before_write gets the path with which the file was opened, before_rename the new path.
  std::function<void()> before_call;
  std::function<void(const std::string& path)> before_write;
  std::function<void(const std::string& to)> before_rename;
  // Hooks that run after a change. after_write gets the file's names at this moment; a removed file has none.
  std::function<void(const std::vector<std::string>& paths)> after_write;
  std::function<void(const std::string& from, const std::string& to)> after_rename;
  int64_t calls() const { return count_; }

  // Simulates a crash and restart of the machine. The key draws which unsynced changes survive. Without a key all of
  // them survive; with none_survives none does.
  void crash(std::optional<RandomKey> key, bool none_survives = false) {
    const std::lock_guard lock(mutex_);
    files_.crash(key, none_survives);
    start_again();
  }
  // Simulates the death and restart of the process while the machine runs on. The new process sees every write, and
  // unsynced writes stay unsynced.
  void restart() {
    const std::lock_guard lock(mutex_);
    start_again();
  }
  // Returns the bytes of a file, for a test that corrupts them.
  std::vector<std::byte>& raw(const std::string& path) {
    CachedNode& node = *files_.at(path);
    node.forget_writes();
    return node.data;
  }
  // Makes a file durable that nobody has synced, as if the kernel had written it back by itself.
  void settle(const std::string& path) {
    const std::lock_guard lock(mutex_);
    files_.settle(path);
  }
  void settle_raw(const std::string& path) { files_.at(path)->settle_data(); }

  // ---- Disk --------------------------------------------------------------------------------------------------------
  std::unique_ptr<Disk::File> create(const std::string& path) override {
    return call([&] { return std::make_unique<Open>(*this, path, files_.open(path, true)); });
  }
  std::unique_ptr<Disk::File> append(const std::string& path) override {
    return call([&] { return std::make_unique<Open>(*this, path, files_.open(path, false)); });
  }
  std::vector<std::byte> read(const std::string& path) override {
    return call([&] { return files_.file_at(path)->data; });
  }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return call([&]() -> size_t {
      const auto& data = files_.file_at(path)->data;
      if (offset >= data.size()) return 0;
      const auto got = std::min<uint64_t>(out.size(), data.size() - offset);
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset), got, out.begin());
      return got;
    });
  }
  std::vector<Entry> list(const std::string& directory) override {
    return call([&] { return files_.list(directory); });
  }
  bool exists(const std::string& path) override {
    return call([&] { return files_.find(path) != nullptr; });
  }
  uint64_t size(const std::string& path) override {
    return call([&]() -> uint64_t { return files_.at(path)->data.size(); });
  }
  void make_directories(const std::string& path) override {
    call([&] { files_.make_directories(path); });
  }
  void make_directory(const std::string& path) override {
    call([&] { files_.make_directory(path); });
  }
  void rename(const std::string& from, const std::string& to) override {
    if (before_rename) before_rename(to);
    call([&] { files_.rename(from, to); });
    if (after_rename) after_rename(from, to);
  }
  void symlink(const std::string& target, const std::string& path) override {
    call([&] { files_.symlink(target, path); });
  }
  void remove_file(const std::string& path) override {
    call([&] { files_.remove_file(path); });
  }
  void remove_all(const std::string& path) override {
    call([&] { files_.remove_all(path); });
  }
  void sync_directory(const std::string& path) override {
    call([&] { files_.at(path)->sync_entries(); });
  }
  void drop_cache(const std::string& path) override {
    call([&] {
      CachedNode& node = *files_.file_at(path);
      if (node.media) node.data = *node.media;
    });
  }

 private:
  class Open final : public Disk::File {
   public:
    Open(FaultyDisk& disk, std::string path, CachedNode::Pointer node)
        : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}
    void write(std::span<const std::byte> bytes) override {
      if (disk_.before_write) disk_.before_write(path_);
      const auto put = [&](size_t size) {
        node_->write({node_->data.size(), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, false});
      };
      disk_.call(
          [&] {
            if (disk_.files_.bytes() + bytes.size() > disk_.capacity_)
              throw DiskError("the disk is full", "a hint", ENOSPC);
            put(bytes.size());
          },
          [&] { put(bytes.size() / 2); });
      if (disk_.after_write) disk_.after_write(disk_.files_.names_of(*node_));
    }
    void sync() override {
      disk_.call(
          [&] {
            if (node_->poisoned) return;
            node_->sync_data();
            if (--disk_.lie_in_ == 0 && !node_->data.empty()) {
              node_->media = node_->data;
              (*node_->media)[node_->data.size() / 2] ^= std::byte{4};
            }
          },
          [&] { node_->poisoned = true; });
    }
    void close() override {
      disk_.call([] {});
    }

   private:
    FaultyDisk& disk_;
    const std::string path_;
    CachedNode::Pointer node_;
  };

  // Counts one call, and fails it or stops the process if the test asked for that. `half` is what remains of a call
  // that fails, or before which the process stops: for example a write of half the bytes.
  template <typename Effect>
  auto call(
      Effect effect, const std::function<void()>& half = [] {}) -> decltype(effect()) {
    if (before_call) before_call();
    const std::lock_guard lock(mutex_);
    if (stopped_) throw WorldStopped();
    const int64_t now = ++count_;
    if (now == stop_at_ && stop_when_ == When::before) {
      stopped_ = true;
      half();
      throw WorldStopped();
    }
    if (now == fail_at_) {
      half();
      throw DiskError("injected failure of call " + std::to_string(now), "a hint", fail_code_);
    }
    if (now == stop_at_) {
      stopped_ = true;
      effect();
      throw WorldStopped();
    }
    return effect();
  }
  void start_again() {
    stopped_ = false;
    stop_at_ = fail_at_ = -1;
  }

  mutable std::recursive_mutex mutex_;
  CachedFiles files_;
  int64_t count_ = 0, stop_at_ = -1, fail_at_ = -1, lie_in_ = -1;
  When stop_when_ = When::before;
  int fail_code_ = 0;
  uint64_t capacity_ = std::numeric_limits<uint64_t>::max();
  bool stopped_ = false;
};

}  // namespace sinew
