// Removing what nothing refers to.
//
// A content on its way out first loses its name, then everybody is asked again who wants it, and only then it is
// removed or gets its name back. Whoever holds a digest names it before he looks for the content, so either he finds it
// gone and puts it again, or the question reaches him. No locks, and no harm by a death anywhere: a name that was taken
// is still found (Contents::find), and the next collection asks again. Recipes go before parts; a part is wanted as
// long as any recipe that is there names it.
#include <algorithm>

#include "registry/artifacts_state.h"

namespace sinew::registry {
namespace {

// The second question costs as much as all there is, so each batch is the double of the one before; but what it takes
// to remove one must not outlast a lease.
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
  // Wanted by somebody: holds first, then the rest. Who lets go has attached before.
  std::set<std::string> wanted() {
    std::set<std::string> all = contents_.held();
    all.merge(referenced_());
    return all;
  }

  // What recipes name; false: one of them can not be read.
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
    if (!disk_.exists(entry.path)) return;  // somebody who holds it gave it its name back
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
  std::map<std::string, std::vector<Stored>> recipes_;  // those that are there
  std::set<std::string> going_;                         // with only_say: what would be gone, recipes among it
  std::set<std::string> problems_;
  Artifacts::Collected result_;
};

}  // namespace

Artifacts::Collected Artifacts::collect(const std::function<std::set<std::string>()>& referenced, bool only_say) {
  return Collection(state_->contents, referenced, only_say).run();
}

}  // namespace sinew::registry
