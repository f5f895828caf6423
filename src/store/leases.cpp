// Implements named leases with one holder each. A process can acquire a lease once it has expired by the store's clock.
// Each new holder gets a higher fence, and the store accepts writes only with the newest fence.
#include <cmath>

#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

struct LeaseRow {
  std::string holder;
  int64_t fence = 0;
  double until = 0;
};

LeaseRow find_lease(Database& database, const std::string& name) {
  LeaseRow found;
  database.each("SELECT holder, fence, until FROM lease WHERE name = ?1", {std::string_view(name)},
                [&](const Row& row) {
                  found = {std::string(row.text(0)), row.integer(1), row.real(2)};
                });
  return found;
}

// Returns a text for a refusal. It names the holder of the lease.
std::string describe(const std::string& name, const LeaseRow& lease, double now) {
  if (lease.holder.empty()) return "lease \"" + name + "\" has no holder";
  const double left = lease.until - now;
  const std::string validity =
      left > 0 ? "for another " + std::to_string(static_cast<int64_t>(std::ceil(left))) + " s" : "but has expired";
  return "lease \"" + name + "\" is held by \"" + lease.holder + "\" " + validity + " (fence " +
         std::to_string(lease.fence) + ")";
}

void set_lease(Database& database, const std::string& name, const LeaseRow& lease) {
  database.run(
      "INSERT INTO lease(name, holder, fence, until) VALUES (?1, ?2, ?3, ?4) "
      "ON CONFLICT(name) DO UPDATE SET holder = excluded.holder, fence = excluded.fence, until = excluded.until",
      {std::string_view(name), std::string_view(lease.holder), lease.fence, lease.until});
}

}  // namespace

Applied apply(Transaction& transaction, const Acquire& change) {
  const auto refusal = Validator()
                           .id("the lease's name", change.name)
                           .id("the holder", change.holder)
                           .seconds("a lease", change.seconds)
                           .refusal();
  if (refusal) return std::unexpected(*refusal);
  LeaseRow lease = find_lease(transaction.database, change.name);
  if (!lease.holder.empty() && lease.until > transaction.now)
    return refused(Reason::kHeld, describe(change.name, lease, transaction.now));
  lease = {change.holder, lease.fence + 1, transaction.now + change.seconds};
  set_lease(transaction.database, change.name, lease);
  add_event(transaction, "lease.taken", {Kind::kLease, change.name, lease.fence}, change.holder);
  return Answer{0, lease.fence};
}

// An expired lease can still be renewed, unless another process has acquired it.
Applied apply(Transaction& transaction, const Renew& change) {
  if (const auto refusal = Validator().seconds("a lease", change.seconds).refusal()) return std::unexpected(*refusal);
  LeaseRow lease = find_lease(transaction.database, change.name);
  if (lease.holder.empty() || lease.fence != change.fence)
    return refused(Reason::kStale, describe(change.name, lease, transaction.now));
  lease.until = transaction.now + change.seconds;
  set_lease(transaction.database, change.name, lease);
  return Answer{0, lease.fence};
}

Applied apply(Transaction& transaction, const Release& change) {
  LeaseRow lease = find_lease(transaction.database, change.name);
  if (lease.fence != change.fence || change.fence == 0)
    return refused(Reason::kStale, describe(change.name, lease, transaction.now));
  if (lease.holder.empty()) return Answer{0, lease.fence, true};
  add_event(transaction, "lease.released", {Kind::kLease, change.name, lease.fence}, lease.holder);
  lease.holder.clear();
  lease.until = 0;
  set_lease(transaction.database, change.name, lease);
  return Answer{0, lease.fence};
}

// An expired lease counts as held until another process acquires it, because nobody else can have acted under it
// before.
std::optional<Refusal> lost_lease(Transaction& transaction, const HeldLease& held) {
  const LeaseRow lease = find_lease(transaction.database, held.name);
  if (!lease.holder.empty() && lease.fence == held.fence) return std::nullopt;
  return Refusal{Reason::kStale, describe(held.name, lease, transaction.now)};
}

Lease read_lease(Database& database, const std::string& name, double now) {
  const LeaseRow lease = find_lease(database, name);
  if (lease.holder.empty()) return {"", lease.fence, 0};
  return {lease.holder, lease.fence, lease.until - now};
}

}  // namespace sinew::store
