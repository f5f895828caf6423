#include "registry/file_digests.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/disk.h"
#include "base/json_text.h"
#include "base/sha256.h"

namespace sinew::registry {
namespace {

using nlohmann::json;

constexpr double kFreshSeconds = 2;
constexpr size_t kMaxUnusedEntries = 500'000;  // save() keeps at most this many entries that this process did not use

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::string sha256_of_file(const std::string& path) {
  Sha256 hash;
  std::vector<std::byte> buffer(kReadBytes);
  uint64_t at = 0;
  while (const size_t got = system_disk().read_at(path, at, buffer)) {
    hash.update(std::span<const std::byte>(buffer).first(got));
    at += got;
  }
  return hash.hex();
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0)
    throw Error("DATA_FILE_UNREADABLE", "cannot examine " + path + ": " + std::strerror(errno), kPathsHint);
  if (!S_ISREG(facts.st_mode)) throw Error("DATA_FILE_UNREADABLE", path + " is not a regular file", kPathsHint);
  return {static_cast<int64_t>(facts.st_size), static_cast<int64_t>(facts.st_ino), static_cast<int64_t>(facts.st_dev),
          nanoseconds(facts.st_mtim), nanoseconds(facts.st_ctim)};
}

// The cache has one entry on each line, so that a million entries need no large document in memory. Invalid lines are
// ignored; their digests are computed again.
FileDigests::FileDigests(std::string cache, Clock& clock) : cache_(std::move(cache)), clock_(clock) {
  if (cache_.empty()) return;
  std::ifstream lines(cache_, std::ios::binary);
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line, nullptr, false);
    if (!entry.is_array() || entry.size() != 7) continue;
    try {
      Entry known;
      known.facts = {entry[1], entry[2], entry[3], entry[4], entry[5]};
      known.digest = entry[6].get<std::string>();
      if (is_sha256(known.digest)) entries_[entry[0].get<std::string>()] = std::move(known);
    } catch (const json::exception&) {
      continue;
    }
  }
}

bool FileDigests::knows(const std::string& path, const FileStamp& facts) {
  const auto it = entries_.find(absolute(path));
  if (it == entries_.end() || it->second.facts != facts) return false;
  return it->second.asked_for = true;
}

std::string FileDigests::digest(const std::string& path, const FileStamp& facts) {
  const std::string key = absolute(path);
  if (knows(path, facts)) return entries_.at(key).digest;
  const double began = clock_.wall_seconds();  // a change after this moment sets times that are not older than it
  std::string digest = sha256_of_file(path);
  if (stamp_of(path) != facts)
    throw Error("DATA_FILE_CHANGED", path + " changed while Sinew read it", "try again once no program writes to it");
  const double newest = static_cast<double>(std::max(facts.modified_ns, facts.changed_ns)) / 1e9;
  if (newest + kFreshSeconds < began) {
    entries_[key] = {facts, digest, true};
    changed_ = true;
  }
  return digest;
}

void FileDigests::save() {
  if (cache_.empty() || !changed_) return;
  try {
    write_durably(system_disk(), cache_, [&](Disk::File& file) {
      size_t others = 0;
      std::string text;
      for (const auto& [path, entry] : entries_) {
        if (!entry.asked_for && ++others > kMaxUnusedEntries) continue;
        const FileStamp& facts = entry.facts;
        const json line = {path,        facts.bytes, facts.inode, facts.device, facts.modified_ns, facts.changed_ns,
                           entry.digest};
        text += dump_json(line) + "\n";
        if (text.size() < kReadBytes) continue;
        file.write(std::as_bytes(std::span(text)));
        text.clear();
      }
      file.write(std::as_bytes(std::span(text)));
    });
    changed_ = false;
  } catch (const Error&) {
  }
}

}  // namespace sinew::registry
