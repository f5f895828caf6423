#include "registry/index_lease.h"

#include "base/lease_holder.h"

namespace sinew::registry {
namespace {

constexpr const char* kIndexLease = "registry.index";
constexpr double kIndexLeaseSeconds = 30;

}  // namespace

IndexLease::IndexLease(store::Store& store, std::string holder) : store_(store), holder_(std::move(holder)) {
  if (holder_.empty()) holder_ = lease_holder();
}

IndexLease::~IndexLease() {
  if (fence_ == 0) return;
  try {
    store_.write(store::Release{kIndexLease, fence_});
  } catch (const std::exception&) {  // the lease expires by itself
  }
}

bool IndexLease::renew() {
  if (fence_ != 0 && store_.write(store::Renew{kIndexLease, fence_, kIndexLeaseSeconds})) return true;
  fence_ = 0;
  return false;
}

std::string IndexLease::acquire() {
  auto taken = store_.write(store::Acquire{kIndexLease, holder_, kIndexLeaseSeconds});
  std::string other;
  if (!taken) {
    const store::Lease lease = store_.lease(kIndexLease);
    other = describe_holder(lease.holder);
    // If the holder was killed, do not wait until its lease expires. If another process has already taken the lease
    // over, the store refuses this.
    if (has_surely_ended(lease.holder) && store_.write(store::Release{kIndexLease, lease.fence}))
      taken = store_.write(store::Acquire{kIndexLease, holder_, kIndexLeaseSeconds});
  }
  if (!taken) return other.empty() ? taken.error().why : other;
  fence_ = taken->answers.at(0).fence;
  return "";
}

bool IndexLease::write_if_unchanged(std::vector<store::Change> changes,
                                    std::optional<store::Batch::Unchanged> unchanged) {
  store::Batch batch{std::move(changes), {}, {{kIndexLease, fence_}}};
  if (unchanged) batch.unchanged = {*unchanged};
  const auto outcome = store_.write(batch);
  if (outcome) return true;
  using Reason = store::Refusal::Reason;
  if (outcome.error().reason == Reason::kStale) throw LeaseLost{outcome.error().why};
  if (unchanged && outcome.error().reason == Reason::kConflict &&
      store_.newest_event(unchanged->subject) != unchanged->seq)
    return false;
  throw Problem{"the store refuses the contents of its files: " + outcome.error().why};
}

}  // namespace sinew::registry
