#include "registry/index_lease.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/process.h"

namespace sinew::registry {
namespace {

constexpr const char* kIndexLease = "registry.index";
constexpr double kIndexLeaseSeconds = 30;

// Returns whether the holder ("host:pid", as the index names itself) is a dead process of this machine. Returns false
// for holders on other machines, because we cannot know.
bool is_surely_dead(const std::string& holder) {
  const size_t colon = holder.rfind(':');
  if (colon == std::string::npos || holder.substr(0, colon) != host_name()) return false;
  pid_t pid = 0;
  const auto [end, code] = std::from_chars(holder.data() + colon + 1, holder.data() + holder.size(), pid);
  return code == std::errc() && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

IndexLease::IndexLease(store::Store& store, std::string holder) : store_(store), holder_(std::move(holder)) {
  if (holder_.empty()) holder_ = host_name() + ":" + std::to_string(::getpid());
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
    other = lease.holder;
    // If the holder was killed, do not wait until its lease expires. The store refuses this if another process did the
    // same before us.
    if (is_surely_dead(lease.holder) && store_.write(store::Release{kIndexLease, lease.fence}))
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
