// Inside registry/: defines how the artifacts' directory holds blobs, and finds blobs in it
// (docs/formats/artifacts.md).
//
//   ab/<digest>                   a blob
//   ab/<digest>.is_manifest       a chunk manifest: the list of the blobs (chunks) that form this blob
//   ab/<either>.is_tombstone-...  a tombstone: a garbage collection will remove this file or rename it back
//   store                         the id of the store that refers to these blobs
//   holds/<time>-...              a pin: the digests, one on each line, that a process puts or keeps
//   incoming/<time>-...           a blob that is being written
#pragma once

#include <cerrno>
#include <expected>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "checkpoint/checkpoint.h"
#include "registry/registry.h"

namespace sinew::registry {

inline constexpr std::string_view kManifestSuffix = ".is_manifest", kTombstoneSuffix = ".is_tombstone-",
                                  kOwnerFile = "/store";
inline constexpr const char* kRestoreHint = "restore the artifacts' directory from a backup";
inline constexpr int kMaxLookups = 100;           // attempts to open a blob that garbage collections keep renaming
inline constexpr double kPinSeconds = 24 * 3600;  // a pin or an incoming file that is older was left by a dead process

// The chunks of a blob that is stored in several files.
struct ChunkManifest {
  int64_t bytes = 0;
  std::vector<BlobInfo> chunks;
  bool operator==(const ChunkManifest&) const = default;
};
std::string to_text(const ChunkManifest& manifest);
std::expected<ChunkManifest, std::string> parse_chunk_manifest(std::string_view text);

// What the name of a blob's file says.
struct BlobName {
  std::string digest;
  bool is_manifest = false, is_tombstone = false;
};
std::optional<BlobName> parse_blob_name(std::string_view name);

class BlobStore {
 public:
  BlobStore(std::string root, Disk& disk, Clock& clock) : root(std::move(root)), disk(disk), clock(clock) {}

  struct Found {
    std::string path;
    bool is_manifest = false, is_tombstone = false;
  };
  std::optional<Found> find(const std::string& digest);        // finds a blob under any of its names
  Found get(const std::string& digest);                        // throws Error if the blob does not exist
  ChunkManifest read_chunk_manifest(const std::string& path);  // throws Error if the chunk manifest is damaged
  // returns the size of the whole blob; throws the Errors of get() and read_chunk_manifest()
  uint64_t size(const std::string& digest);
  // Finds the blob and calls `use` with the result. Does both again if a garbage collection renames the file in
  // between.
  template <typename Use>
  auto with(const std::string& digest, Use use) {
    for (int attempt = 1;; ++attempt) {
      const Found found = get(digest);
      try {
        return use(found);
      } catch (const DiskError& error) {
        if (error.system_code != ENOENT || attempt == kMaxLookups) throw;
      }
    }
  }

  void make_folder(const std::string& digest);  // makes the blob's folder and its name durable
  std::string folder(const std::string& digest) const { return root + "/" + digest.substr(0, 2); }
  std::string path(const std::string& digest) const { return folder(digest) + "/" + digest; }
  std::string unique_name();  // <seconds since 1970>-<host>-<random>-<process>-<n>; a new name on each call
  bool is_old(std::string_view unique_name) const;

  struct Entry {
    std::string path;
    BlobName name;
  };
  std::vector<Entry> list();
  std::set<std::string> pinned();  // the digests in all pins that are not old

  const std::string root;
  Disk& disk;
  Clock& clock;

 private:
  std::optional<Found> find_named(const std::string& digest);
  std::mutex mutex_;
  std::set<std::string> made_;  // folders whose names are known to be durable
};

// Returns where to cut a safetensors file into chunks, so that versions share whole chunks: the end offset of each
// chunk. The last one is `file_bytes`. A big tensor is one chunk, and adjacent small tensors form one chunk. In a file
// of very many tensors, several big ones form one chunk. If there are fewer than three chunks, the caller stores the
// file as one blob.
std::vector<uint64_t> cuts_of(const checkpoint::SafetensorsIndex& index, uint64_t file_bytes);

}  // namespace sinew::registry
