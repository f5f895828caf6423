// Collecting with the store as the judge of what is referred to.
#include <unistd.h>

#include "base/process.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

constexpr const char* kLease = "registry.collect";
constexpr double kLeaseSeconds = 120;

class Lease {
 public:
  explicit Lease(store::Store& store) : store_(store) {
    const auto taken =
        store.write(store::Acquire{kLease, host_name() + ":" + std::to_string(::getpid()), kLeaseSeconds});
    if (!taken) throw Error("another process is collecting: " + taken.error().why, "wait for it");
    fence_ = taken->answers.at(0).fence;
  }
  ~Lease() {
    try {
      store_.write(store::Release{kLease, fence_});
    } catch (const std::exception&) {  // it runs out
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  void renew() {
    if (const auto renewed = store_.write(store::Renew{kLease, fence_, kLeaseSeconds}); !renewed)
      throw Error("another process is collecting now: " + renewed.error().why,
                  "nothing that is referred to was removed");
  }

 private:
  store::Store& store_;
  int64_t fence_ = 0;
};

}  // namespace

Artifacts::Collected collect_garbage(store::Store& store, Artifacts& artifacts, bool only_say) {
  Lease lease(store);
  const auto referenced = [&] {
    lease.renew();
    std::set<std::string> digests;
    for (const store::Content& content : store.contents()) digests.insert(content.digest);
    return digests;
  };
  Artifacts::Collected collected = artifacts.collect(referenced, only_say);
  if (only_say) return collected;
  for (const store::Content& content : store.loose_contents()) {
    if (!artifacts.has(content.digest)) store.write(store::Forget{content.digest});  // refused if it is wanted again
  }
  return collected;
}

}  // namespace sinew::registry
