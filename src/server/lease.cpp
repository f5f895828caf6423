#include "server/lease.h"

#include <chrono>

#include "base/error.h"
#include "base/lease_holder.h"

namespace sinew::server {
namespace {

constexpr double kLeaseSeconds = 10;
constexpr auto kRenewInterval = std::chrono::seconds(2);

}  // namespace

ServerLease::ServerLease(store::Store& store, const std::string& address) : store_(store) {
  constexpr int kTries = 5;  // another server may acquire the lease between its release and this server's attempt
  for (int i = 0;; ++i) {
    const auto outcome = store_.write(store::Acquire{kName, lease_holder(address), kLeaseSeconds});
    if (outcome) {
      fence_ = outcome->answers.front().fence;
      break;
    }
    const store::Lease lease = store_.lease(kName);
    if (i < kTries && has_surely_ended(lease.holder)) {
      (void)store_.write(store::Release{kName, lease.fence});  // if another server was faster, the store refuses this
      continue;
    }
    throw Error("SERVER_ALREADY_RUNNING", "another server serves this store: " + describe_holder(lease.holder),
                "use that server or stop it; if it is dead, wait " +
                    std::to_string(static_cast<int>(lease.seconds) + 1) + " s");
  }
  thread_ = std::thread([this] { renew(); });
}

ServerLease::~ServerLease() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  try {
    (void)store_.write(store::Release{kName, fence_});
  } catch (const std::exception&) {
    // The lease expires by itself.
  }
}

std::string ServerLease::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// Renews the lease until the server ends or another server takes the lease over.
void ServerLease::renew() {
  std::unique_lock lock(mutex_);
  while (lost_.empty() && !changed_.wait_for(lock, kRenewInterval, [this] { return ending_; })) {
    lock.unlock();
    std::string lost;
    try {
      const auto outcome = store_.write(store::Renew{kName, fence_, kLeaseSeconds});
      if (!outcome) lost = outcome.error().why;
    } catch (const std::exception&) {
      // If the store cannot be written, no request can write either. Later the fence refuses the writes of a server
      // that has lost its lease.
    }
    lock.lock();
    lost_ = lost;
  }
}

}  // namespace sinew::server
