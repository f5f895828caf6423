// Garbage collection: removes the blobs to which nothing refers.
//
// The collection first renames a blob to a tombstone, then reads all references again, and only then removes the blob
// or renames it back. A process that pins a blob writes its digest into the pin before it looks for the blob. So either
// that process finds the blob missing and puts it again, or the collection reads the pin. This needs no locks, and a
// process may die at any point: readers still find tombstones (Contents::find), and the next collection decides about
// them again. The collection removes chunk manifests before chunks; a chunk is referenced as long as any existing chunk
// manifest lists it.
#include <algorithm>

#include "registry/artifacts_state.h"

namespace sinew::registry {
namespace {

// Each batch reads all references again, which costs time in proportion to all blobs, so batches double in size. The
// maximum keeps the removal of one batch shorter than the lease.
constexpr size_t kFirstBatch = 256, kMostAtOnce = 16'384;

using Referenced = std::function<std::set<std::string>()>;

class Collection {
 public:
  Collection(Contents& contents, const Referenced& referenced, bool only_say)
      : contents_(contents), disk_(contents.disk), referenced_(referenced), only_say_(only_say) {}

  Artifacts::Collected run() {
    remove_old("holds");
    remove_old("incoming");
    collect(true);
    if (read_recipes()) {
      collect(false);
    } else {
      result_.problems.push_back("no single files were removed: what a damaged recipe names is not known");
    }
    sum_up();
    return result_;
  }

 private:
  // Returns all referenced digests. Reads the pins before the store: a process attaches a blob in the store before it
  // unpins it, so one of the two reads sees the reference.
  std::set<std::string> wanted() {
    std::set<std::string> all = contents_.held();
    all.merge(referenced_());
    return all;
  }

  // Reads all chunk manifests. Returns false if one of them cannot be read.
  bool read_recipes() {
    bool all_read = true;
    std::map<std::string, std::vector<Stored>> there;
    for (const Contents::Entry& entry : contents_.list()) {
      if (!entry.name.recipe || going_.contains(entry.path)) continue;
      if (const auto known = recipes_.find(entry.name.digest); known != recipes_.end()) {
        there.insert(*known);
        continue;
      }
      try {
        there[entry.name.digest] = contents_.recipe(entry.path).parts;
      } catch (const Error& error) {
        all_read = false;
        if (problems_.insert(error.what()).second) result_.problems.push_back(error.what());
      }
    }
    recipes_ = std::move(there);
    return all_read;
  }

  std::set<std::string> live(bool recipes) {
    std::set<std::string> all = wanted();
    if (recipes) return all;
    if (!read_recipes()) return everything();
    for (const auto& [digest, parts] : recipes_) {
      for (const Stored& part : parts) all.insert(part.digest);
    }
    return all;
  }
  std::set<std::string> everything() {
    std::set<std::string> all;
    for (const Contents::Entry& entry : contents_.list()) all.insert(entry.name.digest);
    return all;
  }

  void collect(bool recipes) {
    const std::set<std::string> kept = live(recipes);
    std::vector<Contents::Entry> candidates;
    for (Contents::Entry& entry : contents_.list()) {
      if (entry.name.recipe == recipes && (entry.name.leaving || !kept.contains(entry.name.digest)))
        candidates.push_back(std::move(entry));
    }
    if (only_say_) return say(candidates, kept);
    for (size_t at = 0, size = kFirstBatch; at < candidates.size(); size = std::min(2 * size, kMostAtOnce)) {
      const auto batch = std::span(candidates).subspan(at, std::min(size, candidates.size() - at));
      remove(batch, recipes);
      at += batch.size();
    }
  }

  void say(const std::vector<Contents::Entry>& candidates, const std::set<std::string>& kept) {
    for (const Contents::Entry& entry : candidates) {
      if (kept.contains(entry.name.digest)) continue;
      count(entry.path);
      going_.insert(entry.path);
    }
  }

  void count(const std::string& path) {
    ++result_.contents;
    result_.bytes += static_cast<int64_t>(disk_.size(path));
  }

  void remove(std::span<Contents::Entry> candidates, bool recipes) {
    std::vector<Contents::Entry*> taken;
    for (Contents::Entry& entry : candidates) {
      if (entry.name.leaving || take_name(entry)) taken.push_back(&entry);
    }
    const std::set<std::string> kept = live(recipes);
    for (const Contents::Entry* entry : taken) kept.contains(entry->name.digest) ? give_back(*entry) : destroy(*entry);
  }

  bool take_name(Contents::Entry& entry) {
    const std::string leaving = entry.path + std::string(kLeaving) + contents_.unique_name();
    if (!rename_if_there(entry.path, leaving)) return false;
    entry.path = leaving;
    return true;
  }

  void give_back(const Contents::Entry& entry) {
    const std::string name = contents_.path(entry.name.digest) + std::string(entry.name.recipe ? kRecipe : "");
    rename_if_there(entry.path, name);
    disk_.sync_directory(contents_.folder(entry.name.digest));
  }

  void destroy(const Contents::Entry& entry) {
    if (!disk_.exists(entry.path)) return;  // a process that pins the blob renamed it back
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
    const std::string path = contents_.root + "/" + folder;
    if (only_say_ || !disk_.exists(path)) return;
    for (const Disk::Entry& entry : disk_.list(path)) {
      if (contents_.is_old(entry.name)) disk_.remove_file(path + "/" + entry.name);
    }
  }

  void sum_up() {
    std::set<std::string> there;
    for (const Contents::Entry& entry : contents_.list()) {
      result_.kept_bytes += static_cast<int64_t>(disk_.size(entry.path));
      ++result_.kept;
      there.insert(entry.name.digest);
    }
    if (only_say_) result_.kept -= result_.contents, result_.kept_bytes -= result_.bytes;
    const auto name_missing = [&](const std::string& digest) {
      if (!there.contains(digest) && !contents_.find(digest))
        result_.problems.push_back("content " + digest + " is referred to and not there");
    };
    for (const std::string& digest : referenced_()) name_missing(digest);
    for (const auto& [digest, parts] : recipes_) {
      for (const Stored& part : parts) name_missing(part.digest);
    }
  }

  Contents& contents_;
  Disk& disk_;
  const Referenced& referenced_;
  const bool only_say_;
  std::map<std::string, std::vector<Stored>> recipes_;  // the existing chunk manifests
  std::set<std::string> going_;                         // with only_say: paths of files that would be removed
  std::set<std::string> problems_;
  Artifacts::Collected result_;
};

}  // namespace

Artifacts::Collected Artifacts::collect(const std::function<std::set<std::string>()>& referenced, bool only_say) {
  return Collection(state_->contents, referenced, only_say).run();
}

}  // namespace sinew::registry
