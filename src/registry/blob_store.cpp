#include "registry/blob_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/process.h"
#include "base/sha256.h"

namespace sinew::registry {
namespace {

using nlohmann::json;

constexpr uint64_t kSmallPiece = 16 << 10;  // sharing a smaller tensor would save less than its own file costs
// A file gets at most about so many chunks. Each of them costs a file, and a line of the list that every reader parses.
constexpr size_t kMaxChunks = 1024;

// Returns the cuts at the borders of big tensors that leave at least `least` bytes between two of them.
std::vector<uint64_t> cuts_between(const checkpoint::SafetensorsIndex& index, uint64_t file_bytes, uint64_t least) {
  std::vector<uint64_t> cuts = {index.data_offset};  // the header contains the step, so versions do not share it
  const auto cut = [&](uint64_t at, uint64_t after) {
    if (at >= cuts.back() + after) cuts.push_back(at);
  };
  for (const checkpoint::TensorEntry& tensor : index.tensors) {
    if (tensor.end - tensor.begin < kSmallPiece) continue;
    cut(index.data_offset + tensor.begin, least);
    cut(index.data_offset + tensor.end, least);
  }
  cut(file_bytes, 1);
  return cuts;
}

}  // namespace

std::string to_text(const ChunkManifest& manifest) {
  json chunks = json::array();
  for (const BlobInfo& chunk : manifest.chunks) chunks.push_back({chunk.digest, chunk.bytes});
  return json{{"format", "sinew-recipe"}, {"version", 1}, {"bytes", manifest.bytes}, {"parts", std::move(chunks)}}
             .dump() +
         "\n";
}

std::expected<ChunkManifest, std::string> parse_chunk_manifest(std::string_view text) {
  const json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 5; }, false);
  if (!document.is_object()) return std::unexpected("not a JSON object");
  try {
    if (document.at("format") != "sinew-recipe" || document.at("version") != 1)
      return std::unexpected("not a chunk manifest of version 1");
    ChunkManifest manifest;
    manifest.bytes = document.at("bytes").get<int64_t>();
    int64_t sum = 0;
    for (const json& chunk : document.at("parts")) {
      BlobInfo stored;
      stored.digest = chunk.at(0).get<std::string>();
      stored.bytes = chunk.at(1).get<int64_t>();
      if (!is_sha256(stored.digest)) return std::unexpected("the name of a chunk is not a digest");
      if (stored.bytes < 0 || stored.bytes > manifest.bytes - sum)
        return std::unexpected("the chunks are larger than the blob");
      sum += stored.bytes;
      manifest.chunks.push_back(std::move(stored));
    }
    if (sum != manifest.bytes) return std::unexpected("the chunks are smaller than the blob");
    return manifest;
  } catch (const json::exception&) {
    return std::unexpected("a field is missing or has the wrong type");
  }
}

std::optional<BlobName> parse_blob_name(std::string_view name) {
  BlobName parsed;
  if (name.size() < 64 || !is_sha256(name.substr(0, 64))) return std::nullopt;
  parsed.digest = name.substr(0, 64);
  name.remove_prefix(64);
  if (name.starts_with(kManifestSuffix)) {
    parsed.is_manifest = true;
    name.remove_prefix(kManifestSuffix.size());
  }
  parsed.is_tombstone = name.starts_with(kTombstoneSuffix);
  if (!name.empty() && !parsed.is_tombstone) return std::nullopt;
  return parsed;
}

std::optional<BlobStore::Found> BlobStore::find_named(const std::string& digest) {
  if (const std::string whole = path(digest); disk.exists(whole)) return Found{whole};
  if (std::string made = path(digest) + std::string(kManifestSuffix); disk.exists(made))
    return Found{std::move(made), true};
  return std::nullopt;
}

std::optional<BlobStore::Found> BlobStore::find(const std::string& digest) {
  if (!is_sha256(digest)) return std::nullopt;
  if (auto found = find_named(digest)) return found;
  if (!disk.exists(folder(digest))) return std::nullopt;
  for (const Disk::Entry& entry : disk.list(folder(digest))) {
    const auto name = parse_blob_name(entry.name);
    if (name && name->is_tombstone && name->digest == digest)
      return Found{folder(digest) + "/" + entry.name, name->is_manifest, true};
  }
  return find_named(digest);  // meanwhile a garbage collection or a pin may have renamed the file back
}

BlobStore::Found BlobStore::get(const std::string& digest) {
  if (auto found = find(digest)) return *found;
  if (!is_sha256(digest))
    throw Error("ARTIFACT_BAD_DIGEST", "'" + digest.substr(0, 80) + "' is not a digest",
                "name a file by the 64 hex digits of its SHA-256");
  throw Error("ARTIFACT_NOT_FOUND", "the artifacts in " + root + " do not contain " + digest,
              "restore the artifacts' directory from a backup, or name other artifacts with --artifacts");
}

ChunkManifest BlobStore::read_chunk_manifest(const std::string& path) {
  auto manifest = parse_chunk_manifest(read_text(disk, path));
  if (!manifest) throw Error("ARTIFACT_DAMAGED", path + " is damaged: " + manifest.error(), kRestoreHint);
  return std::move(*manifest);
}

void BlobStore::make_folder(const std::string& digest) {
  const std::string path = folder(digest);
  {
    const std::lock_guard lock(mutex_);
    if (made_.contains(path)) return;
  }
  make_directories_durably(disk, path);
  const std::lock_guard lock(mutex_);
  made_.insert(path);
}

uint64_t BlobStore::size(const std::string& digest) {
  return with(digest, [&](const Found& found) {
    return found.is_manifest ? static_cast<uint64_t>(read_chunk_manifest(found.path).bytes) : disk.size(found.path);
  });
}

std::string BlobStore::unique_name() {
  // Containers that share a directory may have the same host name and the same process ids, and may start in the same
  // second.
  static const std::string process = host_name() + "-" + random_hex(8);
  static std::atomic<uint64_t> count = 0;  // static, because several BlobStore objects may use one directory
  return std::to_string(static_cast<int64_t>(clock.wall_seconds())) + "-" + process + "-" + std::to_string(::getpid()) +
         "-" + std::to_string(count++);
}

bool BlobStore::is_old(std::string_view unique_name) const {
  int64_t seconds = 0;
  const auto [rest, code] = std::from_chars(unique_name.data(), unique_name.data() + unique_name.size(), seconds);
  return code == std::errc() && static_cast<double>(seconds) + kPinSeconds < clock.wall_seconds();
}

std::vector<BlobStore::Entry> BlobStore::list() {
  std::vector<Entry> found;
  if (!disk.exists(root)) return found;
  for (const Disk::Entry& folder : disk.list(root)) {
    if (!folder.directory || folder.name.size() != 2) continue;
    for (const Disk::Entry& entry : disk.list(root + "/" + folder.name)) {
      if (auto name = parse_blob_name(entry.name))
        found.push_back({root + "/" + folder.name + "/" + entry.name, std::move(*name)});
    }
  }
  return found;
}

std::set<std::string> BlobStore::pinned() {
  std::set<std::string> digests;
  const std::string holds = root + "/holds";
  if (!disk.exists(holds)) return digests;
  for (const Disk::Entry& entry : disk.list(holds)) {
    if (is_old(entry.name)) continue;
    std::string text;
    try {
      text = read_text(disk, holds + "/" + entry.name);
    } catch (const DiskError& error) {
      // the pin was removed meanwhile, so its blobs are attached in the store
      if (error.system_code == ENOENT) continue;
      throw;
    }
    for (size_t at = 0; at + 65 <= text.size(); at += 65) digests.insert(text.substr(at, 64));
  }
  return digests;
}

std::vector<uint64_t> cuts_of(const checkpoint::SafetensorsIndex& index, uint64_t file_bytes) {
  std::vector<uint64_t> cuts = cuts_between(index, file_bytes, 1);
  return cuts.size() <= kMaxChunks ? cuts : cuts_between(index, file_bytes, file_bytes / kMaxChunks + 1);
}

}  // namespace sinew::registry
