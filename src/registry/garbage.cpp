// Collects the garbage of the artifacts. Reads from the store which blobs it refers to, and lets Artifacts::collect
// (collect.cpp) remove the others.
#include <unistd.h>

#include "base/hex.h"
#include "base/process.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

constexpr const char* kCollectLease = "registry.collect";
constexpr double kCollectLeaseSeconds = 120;
constexpr const char* kIdNote = "registry.store";

class Lease {
 public:
  explicit Lease(store::Store& store) : store_(store) {
    const auto taken = store.write(
        store::Acquire{kCollectLease, host_name() + ":" + std::to_string(::getpid()), kCollectLeaseSeconds});
    if (!taken)
      throw Error("ARTIFACTS_BUSY", "another process is collecting garbage: " + taken.error().why,
                  "try again once it has finished");
    fence_ = taken->answers.at(0).fence;
  }
  ~Lease() {
    try {
      store_.write(store::Release{kCollectLease, fence_});
    } catch (const std::exception&) {  // the lease expires by itself
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  void renew() {
    if (const auto renewed = store_.write(store::Renew{kCollectLease, fence_, kCollectLeaseSeconds}); !renewed)
      throw Error("ARTIFACTS_BUSY",
                  "this process lost its lease, and another one may collect garbage now: " + renewed.error().why,
                  "try again once it has finished; no referenced file was removed");
  }

 private:
  store::Store& store_;
  int64_t fence_ = 0;
};

// Returns the permanent id of a store. It stays the same if the store is moved.
std::string id_of(store::Store& store) {
  if (const std::string id = store.note(kIdNote); !id.empty()) return id;
  // If several processes do this at once, all of them get the id of the first.
  const std::string made = random_hex(16);
  const auto outcome = store.write(store::Batch{{store::SetNote{kIdNote, made}}, kIdNote});
  if (!outcome)
    throw Error("STORE_NOT_WRITABLE", "cannot write the store's id into the store: " + outcome.error().why,
                "check that the store can be written");
  return store.note(kIdNote);
}

bool refers_to_some(store::Store& store, Artifacts& artifacts) {
  for (const store::Content& content : store.contents()) {
    if (artifacts.has(content.digest)) return true;
  }
  return false;
}

[[noreturn]] void fail_foreign(const Artifacts& artifacts, const std::string& why) {
  throw Error("ARTIFACTS_FOREIGN", "the artifacts in " + artifacts.directory() + " belong to another store" + why,
              "name that store with --store, or other artifacts with --artifacts");
}

// Deletes the store's records of unreferenced blobs that are no longer on the disk. If one of the blobs is referenced
// again, the store refuses the whole batch. Then the changes are written one by one.
void forget_gone(store::Store& store, Artifacts& artifacts, Lease& lease) {
  constexpr size_t kAtOnce = 500;
  std::vector<store::Change> gone;
  const auto write = [&] {
    lease.renew();
    if (!store.write(store::Batch{gone})) {
      for (const store::Change& one : gone) store.write(one);
    }
    gone.clear();
  };
  for (const store::Content& content : store.unreferenced_contents()) {
    if (!artifacts.has(content.digest)) gone.emplace_back(store::ForgetContent{content.digest});
    if (gone.size() == kAtOnce) write();
  }
  if (!gone.empty()) write();
}

}  // namespace

void claim(store::Store& store, Artifacts& artifacts) {
  if (artifacts.owner().empty()) {
    if (!artifacts.empty() && !refers_to_some(store, artifacts))
      fail_foreign(artifacts, ": this one refers to none of them");
    artifacts.set_owner(id_of(store));
  }
  if (const std::string owner = artifacts.owner(); owner != id_of(store))
    fail_foreign(artifacts, ", whose id is " + owner + "; the id of this one is " + id_of(store));
}

Artifacts::Collected collect_garbage(store::Store& store, Artifacts& artifacts, bool dry_run) {
  if (!artifacts.empty()) claim(store, artifacts);
  Lease lease(store);
  const auto referenced = [&] {
    lease.renew();
    std::set<std::string> digests;
    for (const store::Content& content : store.contents()) digests.insert(content.digest);
    return digests;
  };
  Artifacts::Collected collected = artifacts.collect(referenced, dry_run);
  if (dry_run) return collected;
  forget_gone(store, artifacts, lease);
  return collected;
}

}  // namespace sinew::registry
