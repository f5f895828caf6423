// For tests: the files of a FaultyDisk. Each file has two states: the durable one, and the one that the running process
// sees.
//
// A crash keeps or loses each unsynced change on its own: each write since the file's last sync, and each change of a
// directory since its last sync. A rename between two directories changes both; a crash keeps it as a whole or loses it
// as a whole, and a sync of either directory makes it durable, as the journal of ext4 does. A crash may also keep a
// part of a write, or replace its bytes by zeros. The random key draws the combination. Real file systems lose less, so
// code that survives these files also survives real ones (the model follows "All file systems are not created equal",
// OSDI 2014). These classes have no lock of their own; FaultyDisk holds its lock during each call.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/disk.h"
#include "base/random.h"

namespace sinew {

// A file, a directory or a link, with everything that happened to it since its last sync.
class CachedNode {
 public:
  using Pointer = std::shared_ptr<CachedNode>;
  // A rename between two directories makes two changes, which share a fate: true once the rename is durable or the
  // crash that happens now keeps it, false if that crash loses it, nullopt before.
  using Fate = std::shared_ptr<std::optional<bool>>;
  // A change of a directory's entries. A crash keeps it as a whole or loses it. A null pointer removes the name.
  struct Change {
    std::vector<std::pair<std::string, Pointer>> names;
    Fate fate = nullptr;
  };
  struct Write {
    uint64_t offset;
    std::vector<std::byte> bytes;
    bool truncate;
  };

  bool directory = false;
  std::string link;
  std::vector<std::byte> data;                  // files only
  std::map<std::string, Pointer> entries;       // directories only
  std::optional<std::vector<std::byte>> media;  // what the device stores if it corrupts the data
  bool poisoned = false;                        // true: a sync failed, so later syncs store nothing

  void write(Write what) {
    apply(what, data);
    pending_.push_back(std::move(what));
  }
  void change(std::vector<std::pair<std::string, Pointer>> names, Fate fate = nullptr) {
    changes_.push_back({std::move(names), std::move(fate)});
    apply(changes_.back(), entries);
  }
  void sync_data() {
    durable_ = data;
    pending_.clear();
  }
  void sync_entries() {
    for (const Change& change : changes_) {
      if (change.fate) *change.fate = true;
    }
    durable_entries_ = entries;
    changes_.clear();
  }
  // Makes what this one name means durable, as if the kernel had written it back by itself.
  void settle_entry(const std::string& name) {
    for (Change& change : changes_) {
      const auto gone = std::erase_if(change.names, [&](const auto& one) { return one.first == name; });
      if (gone > 0 && change.fate) *change.fate = true;
    }
    durable_entries_[name] = entries.at(name);
  }
  // For a test that changes `data` itself. forget_writes() drops the unsynced writes. settle_data() makes the changed
  // bytes durable, so that a crash does not lose them.
  void forget_writes() { pending_.clear(); }
  void settle_data() { durable_ = data; }

  // Simulates a crash of the machine. fate() decides each write and change: 0 kept, 1 lost, 2 kept in part, 3 kept as
  // zeros.
  template <typename Fate>
  void crash(Fate fate, RandomStream& random) {
    for (const Change& change : changes_) {
      const bool decided = change.fate && *change.fate;
      const bool kept = decided ? **change.fate : fate() % 2 == 0;
      if (change.fate) *change.fate = kept;
      if (kept) apply(change, durable_entries_);
    }
    for (Write write : pending_) {
      const uint64_t what = fate();
      if (what == 2 && !write.bytes.empty()) write.bytes.resize(random.below(write.bytes.size()));
      if (what == 3) std::fill(write.bytes.begin(), write.bytes.end(), std::byte{0});
      if (what != 1) apply(write, durable_);
    }
    changes_.clear();
    pending_.clear();
    poisoned = false;
    data = durable_;
    entries = durable_entries_;
    for (const auto& [name, child] : entries) child->crash(fate, random);
  }

 private:
  static void apply(const Change& change, std::map<std::string, Pointer>& to) {
    for (const auto& [name, node] : change.names) {
      if (node == nullptr)
        to.erase(name);
      else
        to[name] = node;
    }
  }
  static void apply(const Write& write, std::vector<std::byte>& to) {
    if (write.truncate) to.clear();
    to.resize(std::max<size_t>(to.size(), write.offset + write.bytes.size()));
    std::copy(write.bytes.begin(), write.bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(write.offset));
  }

  std::vector<std::byte> durable_;
  std::vector<Write> pending_;
  std::map<std::string, Pointer> durable_entries_;
  std::vector<Change> changes_;
};

// The tree of nodes by their paths. A method that cannot do its work throws DiskError.
class CachedFiles {
 public:
  using NodePtr = CachedNode::Pointer;

  CachedFiles() { root_->directory = true; }

  // The key draws which unsynced changes survive. Without a key, all survive; with none_survives, none survives.
  void crash(std::optional<RandomKey> key, bool none_survives) {
    RandomStream random(key.value_or(RandomKey()));
    root_->crash([&] { return none_survives ? uint64_t{1} : key ? random.below(4) : uint64_t{0}; }, random);
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
  // Creates the file if its name does not exist.
  NodePtr open(const std::string& path, bool truncate) {
    const auto [parent, name] = parent_of(path);
    if (!parent->entries.contains(name)) parent->change({{name, std::make_shared<CachedNode>()}});
    const NodePtr node = file_at(path);
    if (truncate && !node->data.empty()) node->write({0, {}, true});
    return node;
  }
  std::vector<Disk::Entry> list(const std::string& directory) const {
    const NodePtr node = at(directory);
    if (!node->directory) fail(directory, ENOTDIR);
    std::vector<Disk::Entry> entries;
    for (const auto& [name, child] : node->entries) {
      const NodePtr target = child->link.empty() ? child : find(directory + "/" + name);
      entries.push_back({name, target != nullptr && target->directory});
    }
    return entries;
  }
  // The paths that lead to this file, without those that pass a link.
  std::vector<std::string> names_of(const CachedNode& node) const {
    std::vector<std::string> found;
    find_names(*root_, "", node, found);
    return found;
  }
  // The number of bytes in all files.
  uint64_t bytes() const { return bytes_below(*root_); }
  void make_directories(const std::string& path) {
    NodePtr node = root_;
    for (const std::string& name : split(path)) {
      if (!node->directory) fail(path, ENOTDIR);
      if (!node->entries.contains(name)) {
        auto child = std::make_shared<CachedNode>();
        child->directory = true;
        node->change({{name, child}});
      }
      node = node->entries.at(name);
    }
  }
  void make_directory(const std::string& path) {
    const auto [parent, name] = parent_of(path);
    if (parent->entries.contains(name)) fail(path, EEXIST);
    make_directories(path);
  }
  // Makes the names on the path and the file's bytes durable.
  void settle(const std::string& path) {
    NodePtr node = root_;
    for (const std::string& name : split(path)) {
      node->settle_entry(name);
      node = node->entries.at(name);
    }
    if (!node->directory) node->sync_data();
  }
  void rename(const std::string& from, const std::string& to) {
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
    const auto fate = std::make_shared<std::optional<bool>>();
    from_parent->change({{from_name, nullptr}}, fate);
    to_parent->change({{to_name, node}}, fate);
  }
  void symlink(const std::string& target, const std::string& path) {
    const auto [parent, name] = parent_of(path);
    if (parent->entries.contains(name)) fail(path, EEXIST);
    auto node = std::make_shared<CachedNode>();
    node->link = target;
    parent->change({{name, node}});
  }
  void remove_file(const std::string& path) {
    const auto [parent, name] = parent_of(path);
    if (parent->entries.contains(name)) parent->change({{name, nullptr}});
  }
  void remove_all(const std::string& path) {
    const auto [parent, name] = parent_of(path);
    if (!parent->entries.contains(name)) return;
    empty(*parent->entries.at(name));
    parent->change({{name, nullptr}});
  }

 private:
  static uint64_t bytes_below(const CachedNode& node) {
    uint64_t bytes = node.data.size();
    for (const auto& [name, child] : node.entries) bytes += bytes_below(*child);
    return bytes;
  }
  static void find_names(const CachedNode& below, const std::string& path, const CachedNode& node,
                         std::vector<std::string>& found) {
    for (const auto& [name, child] : below.entries) {
      if (child.get() == &node) found.push_back(path + "/" + name);
      find_names(*child, path + "/" + name, node, found);
    }
  }
  [[noreturn]] static void fail(const std::string& path, int code) {
    throw DiskError(path + ": code " + std::to_string(code), "", code);
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
  static void empty(CachedNode& node) {
    if (!node.directory) return;
    for (const auto& [name, child] : std::map(node.entries)) {
      empty(*child);
      node.change({{name, nullptr}});
    }
  }

  const NodePtr root_ = std::make_shared<CachedNode>();
};

}  // namespace sinew
