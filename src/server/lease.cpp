#include "server/lease.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/proc.h"
#include "base/process.h"

namespace sinew::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeaseSeconds = 10;
constexpr auto kRenewInterval = std::chrono::seconds(2);

// Returns when the kernel started the process, in ticks since boot, or "" if there is no such process. The start time
// tells the process from a later one with the same process id.
std::string started(pid_t pid) {
  const ProcessRow row = process_row(pid);
  return row.pid == 0 ? "" : std::to_string(row.started);
}

// Returns a text that identifies this process's PID namespace. Two containers of one machine have different texts, and
// so have two machines with the same host name.
std::string pid_namespace() {
  char text[64] = {};
  const ssize_t size = ::readlink("/proc/self/ns/pid", text, sizeof text - 1);
  return boot_id() + " " + std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
}

std::string holder_text(const std::string& address) {
  return Json{{"host", host_name()},
              {"numbers", pid_namespace()},
              {"pid", ::getpid()},
              {"began", started(::getpid())},
              {"url", address}}
      .dump();
}

// Returns whether the holder's process has certainly ended. Returns false for a process on another machine or in
// another container, which this process cannot check.
bool has_ended(const Json& holder) {
  if (!holder.is_object() || holder.value("host", "") != host_name() ||
      holder.value("numbers", "") != pid_namespace()) {
    return false;
  }
  return started(holder.value("pid", 0)) != holder.value("began", "?");
}

std::string describe(const Json& holder, const std::string& text) {
  if (!holder.is_object()) return text;
  return "process " + std::to_string(holder.value("pid", 0)) + " on " + holder.value("host", "?") + " at " +
         holder.value("url", "?");
}

}  // namespace

ServerLease::ServerLease(store::Store& store, const std::string& address) : store_(store) {
  constexpr int kTries = 5;  // another server may acquire the released lease first
  for (int i = 0;; ++i) {
    const auto outcome = store_.write(store::Acquire{kName, holder_text(address), kLeaseSeconds});
    if (outcome) {
      fence_ = outcome->answers.front().fence;
      break;
    }
    const store::Lease lease = store_.lease(kName);
    const Json holder = Json::parse(lease.holder, nullptr, false);
    if (i < kTries && has_ended(holder)) {
      (void)store_.write(store::Release{kName, lease.fence});  // the store refuses this if another server was faster
      continue;
    }
    throw Error("SERVER_ALREADY_RUNNING", "another server serves this store: " + describe(holder, lease.holder),
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

// Renews the lease until the server ends or another server holds the lease.
void ServerLease::renew() {
  std::unique_lock lock(mutex_);
  while (lost_.empty() && !changed_.wait_for(lock, kRenewInterval, [this] { return ending_; })) {
    lock.unlock();
    std::string lost;
    try {
      const auto outcome = store_.write(store::Renew{kName, fence_, kLeaseSeconds});
      if (!outcome) lost = outcome.error().why;
    } catch (const std::exception&) {
      // While the store cannot be written, requests cannot write either. The fence protects later writes.
    }
    lock.lock();
    lost_ = lost;
  }
}

}  // namespace sinew::server
