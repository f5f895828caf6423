// For the tests of program/: builds .pt2 files byte by byte, so that tests can break every part of a file. Also
// provides a disk in memory.
#pragma once

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "program/archive.h"
#include "program/files.h"

namespace sinew::program {

using TestJson = nlohmann::ordered_json;  // JSON that a test can change

inline std::string bytes_of(uint64_t number, unsigned width) {
  std::string bytes;
  for (unsigned i = 0; i < width; ++i) bytes += static_cast<char>(i < 8 ? number >> (8 * i) : 0);
  return bytes;
}

// A zip archive as torch writes it: sizes in data descriptors, data on 64-byte boundaries, and zip64 end records.
struct Zip {
  struct Entry {
    std::string name, bytes;
    uint16_t method = 0, flags = 0x0808;
    std::optional<std::string> content = {};  // what the bytes hold, if they are compressed
    std::optional<uint64_t> claimed = {};     // the size of the content that the records declare, if it is wrong
  };
  std::vector<Entry> entries;
  bool plain = false;  // true: as other tools write it, with sizes in the local header and no zip64
  std::string comment;

  void add(std::string name, std::string bytes) { entries.push_back({std::move(name), std::move(bytes)}); }
  std::string& operator[](const std::string& name) {
    for (Entry& entry : entries) {
      if (entry.name == name) return entry.bytes;
    }
    add(name, "");
    return entries.back().bytes;
  }
  void remove(const std::string& name) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
  }

  std::string bytes() const {
    std::string out, directory;
    for (const Entry& entry : entries) {
      const uint64_t header = out.size();
      const auto flags = static_cast<uint16_t>(plain ? entry.flags & ~0x08 : entry.flags);
      const std::string& content = entry.content ? *entry.content : entry.bytes;
      const std::string crc = bytes_of(crc32_of(std::as_bytes(std::span(content.data(), content.size()))), 4);
      const std::string sizes = bytes_of(entry.bytes.size(), 4) + bytes_of(entry.claimed.value_or(content.size()), 4);
      const uint64_t data = header + 30 + entry.name.size() + 4, padding = plain ? 0 : (64 - data % 64) % 64;
      const std::string extra = plain ? "" : "FB" + bytes_of(padding, 2) + std::string(padding, 'Z');
      out += "PK\3\4" + bytes_of(0, 2) + bytes_of(flags, 2) + bytes_of(entry.method, 2) + bytes_of(0, 4);
      out += (plain ? crc + sizes : bytes_of(0, 4) + bytes_of(0, 8));
      out += bytes_of(entry.name.size(), 2) + bytes_of(extra.size(), 2) + entry.name + extra + entry.bytes;
      if (!plain) out += "PK\7\10" + crc + sizes;
      directory += "PK\1\2" + bytes_of(0, 4) + bytes_of(flags, 2) + bytes_of(entry.method, 2) + bytes_of(0, 4) + crc +
                   sizes + bytes_of(entry.name.size(), 2) + bytes_of(0, 12) + bytes_of(header, 4) + entry.name;
    }
    const uint64_t at = out.size(), end64 = at + directory.size(), count = entries.size();
    out += directory;
    if (!plain) {
      out += "PK\6\6" + bytes_of(44, 8) + bytes_of(0x1E, 2) + bytes_of(0x2D, 2) + bytes_of(0, 8) + bytes_of(count, 8) +
             bytes_of(count, 8) + bytes_of(directory.size(), 8) + bytes_of(at, 8);
      out += "PK\6\7" + bytes_of(0, 4) + bytes_of(end64, 8) + bytes_of(1, 4);
    }
    return out + "PK\5\6" + bytes_of(0, 4) + bytes_of(count, 2) + bytes_of(count, 2) + bytes_of(directory.size(), 4) +
           bytes_of(at, 4) + bytes_of(comment.size(), 2) + comment;
  }
};

// Simulates the end of the process. It is not an Error, so code that handles errors cannot catch it.
struct Stopped : std::exception {};

// A disk in memory, for the files of one folder. It keeps the durable state separately. Bytes become durable when the
// file is synced, names when the folder is synced.
class MemoryDisk final : public Disk {
 public:
  int64_t calls = 0, fail_at = -1, stop_at = -1;
  bool stopped = false;

  void put(const std::string& path, std::string bytes) {
    names_[path] = durable_names_[path] = std::make_shared<Node>(Node{bytes, bytes});
  }
  std::string get(const std::string& path) const { return names_.at(path)->bytes; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, node] : names_) all.push_back(name);
    return all;
  }
  // Simulates a restart of the machine. Unsynced bytes are lost. Unsynced names are all kept or all lost.
  void crash(bool names_survive) {
    if (!names_survive) names_ = durable_names_;
    for (const auto& [name, node] : names_) node->bytes = node->durable;
    stopped = false;
    stop_at = -1;
  }

  std::unique_ptr<File> create(const std::string& path) override {
    call();
    names_[path] = std::make_shared<Node>();
    return std::make_unique<Open>(*this, names_[path]);
  }
  std::vector<std::byte> read(const std::string& path) override {
    call();
    const std::string& bytes = node(path).bytes;
    std::vector<std::byte> out(bytes.size());
    std::transform(bytes.begin(), bytes.end(), out.begin(), [](char c) { return static_cast<std::byte>(c); });
    return out;
  }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    call();
    const std::string& bytes = node(path).bytes;
    if (offset >= bytes.size()) return 0;
    const size_t got = std::min<size_t>(out.size(), bytes.size() - offset);
    std::transform(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                   bytes.begin() + static_cast<std::ptrdiff_t>(offset + got), out.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return got;
  }
  uint64_t size(const std::string& path) override {
    call();
    return node(path).bytes.size();
  }
  bool exists(const std::string& path) override {
    call();
    return names_.contains(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    call();
    names_[to] = names_.at(from);
    names_.erase(from);
  }
  void remove_file(const std::string& path) override {
    call();
    names_.erase(path);
  }
  void sync_directory(const std::string&) override {
    call();
    durable_names_ = names_;
  }
  std::unique_ptr<File> append(const std::string& path) override { unused(path); }
  std::vector<Entry> list(const std::string& path) override { unused(path); }
  void make_directories(const std::string& path) override { unused(path); }
  void make_directory(const std::string& path) override { unused(path); }
  void symlink(const std::string&, const std::string& path) override { unused(path); }
  void remove_all(const std::string& path) override { unused(path); }
  void drop_cache(const std::string& path) override { unused(path); }

 private:
  struct Node {
    std::string bytes, durable;
  };
  class Open final : public File {
   public:
    Open(MemoryDisk& disk, std::shared_ptr<Node> node) : disk_(disk), node_(std::move(node)) {}
    void write(std::span<const std::byte> bytes) override {
      disk_.call();
      node_->bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void sync() override {
      disk_.call();
      node_->durable = node_->bytes;
    }
    void close() override { disk_.call(); }

   private:
    MemoryDisk& disk_;
    std::shared_ptr<Node> node_;
  };

  void call() {
    if (stopped) throw Stopped();
    ++calls;
    if (calls == fail_at) throw DiskError("injected failure", "a hint", ENOSPC);
    if (calls == stop_at) {
      stopped = true;
      throw Stopped();
    }
  }
  Node& node(const std::string& path) const {
    const auto found = names_.find(path);
    if (found == names_.end()) throw DiskError("cannot read " + path, "check the path", ENOENT);
    return *found->second;
  }
  [[noreturn]] static void unused(const std::string& path) { throw DiskError(path + ": no such call", "", ENOSYS); }

  std::map<std::string, std::shared_ptr<Node>> names_, durable_names_;
};

}  // namespace sinew::program
