// For tests: a disk in memory that can stop the process at any call, fail any call, corrupt synced data and lose
// unsynced data.
//
// The disk keeps the durable state apart from the state that the running process sees. After a crash, each write since
// the file's last sync and each change of a directory since its last sync is kept or lost; a write may also be kept in
// part, or as zeros. The random key draws the combination. Real file systems lose less, so code that survives this disk
// survives them (the model follows "All file systems are not created equal", OSDI 2014).
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/random.h"

namespace sinew {

// Stands for the death of the process. It is not an Error, so that no handler of errors survives it by accident.
struct WorldStopped : std::exception {
  const char* what() const noexcept override { return "the world stopped"; }
};

class FaultyDisk final : public Disk {
 public:
  FaultyDisk() : root_(std::make_shared<Node>()) { root_->directory = true; }

  // ---- faults ------------------------------------------------------------------------------------------------------
  enum class When { before, after };
  void stop_world_at(int64_t call, When when) { stop_at_ = count_ + call, stop_when_ = when; }
  void fail_at(int64_t call, int code) { fail_at_ = count_ + call, fail_code_ = code; }
  void flip_media_bit_at_file_sync(int64_t sync) { lie_in_ = sync; }
  // Hooks that run without the lock, for instance to simulate a slow disk. before_rename gets the new path.
  std::function<void()> before_write;
  std::function<void(const std::string& to)> before_rename;
  int64_t calls() const { return count_; }

  // The machine crashes and restarts. Without a key everything is kept; with none_survives everything unsynced is lost.
  void crash(std::optional<RandomKey> key, bool none_survives = false) {
    const std::lock_guard lock(mutex_);
    RandomStream random(key.value_or(RandomKey()));
    settle(
        *root_, [&] { return none_survives ? uint64_t{1}
                             : key         ? random.below(4)
                                           : uint64_t{0}; }, random);
    stopped_ = false;
    stop_at_ = fail_at_ = -1;
  }
  // Only the process died: the next one sees every write, but unsynced writes stay unsynced.
  void restart() {
    const std::lock_guard lock(mutex_);
    stopped_ = false;
    stop_at_ = fail_at_ = -1;
  }
  // The bytes of a file, for a test that corrupts them.
  std::vector<std::byte>& raw(const std::string& path) {
    Node& node = *at(path);
    node.pending.clear();
    return node.data;
  }
  void settle_raw(const std::string& path) { at(path)->durable = at(path)->data; }

  // ---- Disk --------------------------------------------------------------------------------------------------------
  std::unique_ptr<Disk::File> create(const std::string& path) override {
    return call([&] { return open(path, true); });
  }
  std::unique_ptr<Disk::File> append(const std::string& path) override {
    return call([&] { return open(path, false); });
  }
  std::vector<std::byte> read(const std::string& path) override {
    return call([&] { return file_at(path)->data; });
  }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return call([&]() -> size_t {
      const auto& data = file_at(path)->data;
      if (offset >= data.size()) return 0;
      const auto got = std::min<uint64_t>(out.size(), data.size() - offset);
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset), got, out.begin());
      return got;
    });
  }
  std::vector<Entry> list(const std::string& directory) override {
    return call([&] {
      const NodePtr node = at(directory);
      if (!node->directory) fail(directory, ENOTDIR);
      std::vector<Entry> entries;
      for (const auto& [name, child] : node->entries) {
        const NodePtr target = child->link.empty() ? child : find(directory + "/" + name);
        entries.push_back({name, target != nullptr && target->directory});
      }
      return entries;
    });
  }
  bool exists(const std::string& path) override {
    return call([&] { return find(path) != nullptr; });
  }
  uint64_t size(const std::string& path) override {
    return call([&]() -> uint64_t { return at(path)->data.size(); });
  }
  void make_directories(const std::string& path) override {
    call([&] {
      NodePtr node = root_;
      for (const std::string& name : split(path)) {
        if (!node->directory) fail(path, ENOTDIR);
        if (!node->entries.contains(name)) {
          auto child = std::make_shared<Node>();
          child->directory = true;
          node->change({{name, child}});
        }
        node = node->entries.at(name);
      }
    });
  }
  void rename(const std::string& from, const std::string& to) override {
    if (before_rename) before_rename(to);
    call([&] {
      const auto [from_parent, from_name] = parent_of(from);
      const auto [to_parent, to_name] = parent_of(to);
      if (!from_parent->entries.contains(from_name)) fail(from, ENOENT);
      const NodePtr node = from_parent->entries.at(from_name);
      if (to_parent->entries.contains(to_name)) {
        const NodePtr old = to_parent->entries.at(to_name);
        if (old->directory && !node->directory) fail(to, EISDIR);
        if (old->directory && !old->entries.empty()) fail(to, ENOTEMPTY);
      }
      if (from_parent == to_parent) return from_parent->change({{from_name, nullptr}, {to_name, node}});
      from_parent->change({{from_name, nullptr}});  // two separate changes: real file systems keep more order than this
      to_parent->change({{to_name, node}});
    });
  }
  void symlink(const std::string& target, const std::string& path) override {
    call([&] {
      const auto [parent, name] = parent_of(path);
      if (parent->entries.contains(name)) fail(path, EEXIST);
      auto node = std::make_shared<Node>();
      node->link = target;
      parent->change({{name, node}});
    });
  }
  void remove_file(const std::string& path) override {
    call([&] {
      const auto [parent, name] = parent_of(path);
      if (parent->entries.contains(name)) parent->change({{name, nullptr}});
    });
  }
  void remove_all(const std::string& path) override {
    call([&] {
      const auto [parent, name] = parent_of(path);
      if (!parent->entries.contains(name)) return;
      empty(*parent->entries.at(name));
      parent->change({{name, nullptr}});
    });
  }
  void sync_directory(const std::string& path) override {
    call([&] {
      Node& node = *at(path);
      node.durable_entries = node.entries;
      node.changes.clear();
    });
  }
  void drop_cache(const std::string& path) override {
    call([&] {
      Node& node = *file_at(path);
      if (node.media) node.data = *node.media;
    });
  }

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  using Change =
      std::vector<std::pair<std::string, NodePtr>>;  // applied as a whole or not at all; null removes the name
  struct Write {
    uint64_t offset;
    std::vector<std::byte> bytes;
    bool truncate;
  };
  struct Node {
    bool directory = false;
    std::string link;
    std::vector<std::byte> data, durable;  // files only
    std::vector<Write> pending;
    bool poisoned = false;                                    // a sync failed, so later syncs store nothing
    std::optional<std::vector<std::byte>> media;              // what the device stores if it corrupts the data
    std::map<std::string, NodePtr> entries, durable_entries;  // directories only
    std::vector<Change> changes;

    static void apply(const Change& change, std::map<std::string, NodePtr>& to) {
      for (const auto& [name, node] : change) {
        if (node == nullptr)
          to.erase(name);
        else
          to[name] = node;
      }
    }
    void change(Change what) {
      apply(what, entries);
      changes.push_back(std::move(what));
    }
    static void apply(const Write& write, std::vector<std::byte>& to) {
      if (write.truncate) to.clear();
      to.resize(std::max<size_t>(to.size(), write.offset + write.bytes.size()));
      std::copy(write.bytes.begin(), write.bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(write.offset));
    }
    void write(Write what) {
      apply(what, data);
      pending.push_back(std::move(what));
    }
  };

  class Open final : public Disk::File {
   public:
    Open(FaultyDisk& disk, NodePtr node) : disk_(disk), node_(std::move(node)) {}
    void write(std::span<const std::byte> bytes) override {
      if (disk_.before_write) disk_.before_write();
      const auto put = [&](size_t size) {
        node_->write({node_->data.size(), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, false});
      };
      disk_.call([&] { put(bytes.size()); }, [&] { put(bytes.size() / 2); });
    }
    void sync() override {
      disk_.call(
          [&] {
            if (node_->poisoned) return;
            node_->durable = node_->data;
            node_->pending.clear();
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
    NodePtr node_;
  };

  [[noreturn]] static void fail(const std::string& path, int code) {
    throw DiskError(path + ": code " + std::to_string(code), "", code);
  }

  // Counts one call, and stops or fails it if the test asked for that. A call that fails has the effect `half`.
  template <typename Effect>
  auto call(
      Effect effect, const std::function<void()>& half = [] {}) -> decltype(effect()) {
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

  static std::vector<std::string> split(const std::string& path) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      if (const std::string part = path.substr(begin, end - begin); !part.empty() && part != ".") parts.push_back(part);
      begin = end + 1;
    }
    return parts;
  }
  NodePtr find(const std::string& path, int links = 8) const {
    NodePtr node = root_;
    std::string so_far;
    const auto parts = split(path);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!node->directory || !node->entries.contains(parts[i])) return nullptr;
      const NodePtr child = node->entries.at(parts[i]);
      if (!child->link.empty()) {
        if (links == 0) return nullptr;
        std::string next = so_far + "/" + child->link;
        for (size_t j = i + 1; j < parts.size(); ++j) next += "/" + parts[j];
        return find(next, links - 1);
      }
      so_far += "/" + parts[i];
      node = child;
    }
    return node;
  }
  NodePtr at(const std::string& path) const {
    NodePtr node = find(path);
    if (node == nullptr) fail(path, ENOENT);
    return node;
  }
  NodePtr file_at(const std::string& path) const {
    NodePtr node = at(path);
    if (node->directory) fail(path, EISDIR);
    return node;
  }
  std::pair<NodePtr, std::string> parent_of(const std::string& path) const {
    auto parts = split(path);
    const std::string name = parts.back();
    parts.pop_back();
    std::string parent;
    for (const std::string& part : parts) parent += "/" + part;
    NodePtr node = at(parent);
    if (!node->directory) fail(path, ENOTDIR);
    return {node, name};
  }
  std::unique_ptr<Disk::File> open(const std::string& path, bool truncate) {
    const auto [parent, name] = parent_of(path);
    if (!parent->entries.contains(name)) parent->change({{name, std::make_shared<Node>()}});
    const NodePtr node = file_at(path);
    if (truncate && !node->data.empty()) node->write({0, {}, true});
    return std::make_unique<Open>(*this, node);
  }
  static void empty(Node& node) {
    if (!node.directory) return;
    for (const auto& [name, child] : std::map(node.entries)) {
      empty(*child);
      node.change({{name, nullptr}});
    }
  }
  // fate(): 0 kept, 1 lost, 2 kept in part, 3 kept as zeros
  template <typename Fate>
  static void settle(Node& node, Fate fate, RandomStream& random) {
    for (const Change& change : node.changes) {
      if (fate() % 2 == 0) Node::apply(change, node.durable_entries);
    }
    for (Write write : node.pending) {
      const uint64_t what = fate();
      if (what == 2 && !write.bytes.empty()) write.bytes.resize(random.below(write.bytes.size()));
      if (what == 3) std::fill(write.bytes.begin(), write.bytes.end(), std::byte{0});
      if (what != 1) Node::apply(write, node.durable);
    }
    node.changes.clear();
    node.pending.clear();
    node.poisoned = false;
    node.data = node.durable;
    node.entries = node.durable_entries;
    for (const auto& [name, child] : node.entries) settle(*child, fate, random);
  }

  mutable std::recursive_mutex mutex_;
  NodePtr root_;
  int64_t count_ = 0, stop_at_ = -1, fail_at_ = -1, lie_in_ = -1;
  When stop_when_ = When::before;
  int fail_code_ = 0;
  bool stopped_ = false;
};

}  // namespace sinew
