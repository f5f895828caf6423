// Garbage collection: removes the blobs that nothing refers to.
//
// The collection first renames a blob to a tombstone and then reads all references again. Only then does it remove the
// blob or rename it back. A process that pins a blob writes the digest into the pin before it looks for the blob. So
// either this process finds the blob missing and puts it again, or the collection reads the pin. This needs no locks,
// and a process may die at any point: readers still find tombstones (BlobStore::find), and the next collection decides
// about them again. The collection removes chunk manifests before chunks. A chunk is referenced as long as any existing
// chunk manifest lists it.
#include <algorithm>

#include "registry/artifacts_state.h"

namespace sinew::registry {
namespace {

// All references are read again for each batch, which costs time in proportion to all blobs. So batches double in size.
// The maximum keeps the removal of one batch shorter than the lease.
constexpr size_t kFirstBatch = 256, kMaxAtOnce = 16'384;

using Referenced = std::function<std::set<std::string>()>;

class Collection {
 public:
  Collection(BlobStore& blobs, const Referenced& referenced, bool dry_run)
      : blobs_(blobs), disk_(blobs.disk), referenced_(referenced), dry_run_(dry_run) {}

  Artifacts::Collected run() {
    remove_old("holds");
    remove_old("incoming");
    collect(true);
    if (read_manifests()) {
      collect(false);
    } else {
      result_.problems.push_back(
          "only chunk manifests were removed, because a damaged one does not show which chunks it needs");
    }
    summarize();
    return result_;
  }

 private:
  // Returns all referenced digests. Reads the pins before the store. A process attaches a blob in the store before it
  // unpins it, so one of the two reads sees the reference.
  std::set<std::string> referenced() {
    std::set<std::string> all = blobs_.pinned();
    all.merge(referenced_());
    return all;
  }

  // Reads all chunk manifests. Returns false if one of them is unreadable.
  bool read_manifests() {
    bool all_read = true;
    std::map<std::string, std::vector<BlobInfo>> there;
    for (const BlobStore::Entry& entry : blobs_.list()) {
      if (!entry.name.is_manifest || doomed_.contains(entry.path)) continue;
      if (const auto known = manifests_.find(entry.name.digest); known != manifests_.end()) {
        there.insert(*known);
        continue;
      }
      try {
        there[entry.name.digest] = blobs_.read_chunk_manifest(entry.path).chunks;
      } catch (const Error& error) {
        all_read = false;
        if (problems_.insert(error.what()).second) result_.problems.push_back(error.what());
      }
    }
    manifests_ = std::move(there);
    return all_read;
  }

  std::set<std::string> live(bool manifests) {
    std::set<std::string> all = referenced();
    if (manifests) return all;
    if (!read_manifests()) return everything();
    for (const auto& [digest, chunks] : manifests_) {
      for (const BlobInfo& chunk : chunks) all.insert(chunk.digest);
    }
    return all;
  }
  std::set<std::string> everything() {
    std::set<std::string> all;
    for (const BlobStore::Entry& entry : blobs_.list()) all.insert(entry.name.digest);
    return all;
  }

  void collect(bool manifests) {
    const std::set<std::string> kept = live(manifests);
    std::vector<BlobStore::Entry> candidates;
    for (BlobStore::Entry& entry : blobs_.list()) {
      if (entry.name.is_manifest == manifests && (entry.name.is_tombstone || !kept.contains(entry.name.digest)))
        candidates.push_back(std::move(entry));
    }
    if (dry_run_) return count_removable(candidates, kept);
    for (size_t at = 0, size = kFirstBatch; at < candidates.size(); size = std::min(2 * size, kMaxAtOnce)) {
      const auto batch = std::span(candidates).subspan(at, std::min(size, candidates.size() - at));
      remove(batch, manifests);
      at += batch.size();
    }
  }

  void count_removable(const std::vector<BlobStore::Entry>& candidates, const std::set<std::string>& kept) {
    for (const BlobStore::Entry& entry : candidates) {
      if (kept.contains(entry.name.digest)) continue;
      count(entry.path);
      doomed_.insert(entry.path);
    }
  }

  void count(const std::string& path) {
    ++result_.blobs;
    result_.bytes += static_cast<int64_t>(disk_.size(path));
  }

  void remove(std::span<BlobStore::Entry> candidates, bool manifests) {
    std::vector<BlobStore::Entry*> taken;
    for (BlobStore::Entry& entry : candidates) {
      if (entry.name.is_tombstone || make_tombstone(entry)) taken.push_back(&entry);
    }
    const std::set<std::string> kept = live(manifests);
    for (const BlobStore::Entry* entry : taken)
      kept.contains(entry->name.digest) ? restore(*entry) : remove_blob(*entry);
  }

  bool make_tombstone(BlobStore::Entry& entry) {
    const std::string tombstone = entry.path + std::string(kTombstoneSuffix) + blobs_.unique_name();
    if (!rename_if_there(entry.path, tombstone)) return false;
    entry.path = tombstone;
    return true;
  }

  void restore(const BlobStore::Entry& entry) {
    const std::string name =
        blobs_.path(entry.name.digest) + std::string(entry.name.is_manifest ? kManifestSuffix : "");
    rename_if_there(entry.path, name);
    disk_.sync_directory(blobs_.folder(entry.name.digest));
  }

  void remove_blob(const BlobStore::Entry& entry) {
    if (!disk_.exists(entry.path)) return;  // a process that pins the blob has renamed it back
    try {
      count(entry.path);
    } catch (const DiskError& error) {
      if (error.system_code != ENOENT) throw;
    }
    disk_.remove_file(entry.path);
  }

  bool rename_if_there(const std::string& from, const std::string& to) {
    try {
      disk_.rename(from, to);
      return true;
    } catch (const DiskError& error) {
      if (error.system_code == ENOENT) return false;
      throw;
    }
  }

  void remove_old(const std::string& folder) {
    const std::string path = blobs_.root + "/" + folder;
    if (dry_run_ || !disk_.exists(path)) return;
    for (const Disk::Entry& entry : disk_.list(path)) {
      if (blobs_.is_old(entry.name)) disk_.remove_file(path + "/" + entry.name);
    }
  }

  void summarize() {
    std::set<std::string> there;
    for (const BlobStore::Entry& entry : blobs_.list()) {
      result_.kept_bytes += static_cast<int64_t>(disk_.size(entry.path));
      ++result_.kept;
      there.insert(entry.name.digest);
    }
    if (dry_run_) result_.kept -= result_.blobs, result_.kept_bytes -= result_.bytes;
    const auto name_missing = [&](const std::string& digest) {
      if (!there.contains(digest) && !blobs_.find(digest))
        result_.problems.push_back("artifact " + digest + " is referenced but missing");
    };
    for (const std::string& digest : referenced_()) name_missing(digest);
    for (const auto& [digest, chunks] : manifests_) {
      for (const BlobInfo& chunk : chunks) name_missing(chunk.digest);
    }
  }

  BlobStore& blobs_;
  Disk& disk_;
  const Referenced& referenced_;
  const bool dry_run_;
  std::map<std::string, std::vector<BlobInfo>> manifests_;  // the chunk manifests that exist
  std::set<std::string> doomed_;                            // with dry_run: the files that a collection would remove
  std::set<std::string> problems_;
  Artifacts::Collected result_;
};

}  // namespace

Artifacts::Collected Artifacts::collect(const std::function<std::set<std::string>()>& referenced, bool dry_run) {
  return Collection(state_->blobs, referenced, dry_run).run();
}

}  // namespace sinew::registry
