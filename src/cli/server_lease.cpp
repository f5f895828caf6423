#include "cli/server_lease.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/proc.h"
#include "base/process.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeaseSeconds = 10;
constexpr auto kRenewEvery = std::chrono::seconds(2);

// When the kernel started that process, in its ticks since boot; empty: there is none. With the number it names a
// process for good.
std::string began(pid_t pid) {
  const ProcessRow row = process_row(pid);
  return row.pid == 0 ? "" : std::to_string(row.started);
}

// Where its number names a process: containers of one machine, and machines of one name, have each their own.
std::string numbers() {
  char text[64] = {};
  const ssize_t size = ::readlink("/proc/self/ns/pid", text, sizeof text - 1);
  return boot_id() + " " + std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
}

std::string holder_text(const std::string& url) {
  return Json{
      {"host", host_name()}, {"numbers", numbers()}, {"pid", ::getpid()}, {"began", began(::getpid())}, {"url", url}}
      .dump();
}

// Of another machine or container nothing can be said.
bool is_surely_dead(const Json& holder) {
  if (!holder.is_object() || holder.value("host", "") != host_name() || holder.value("numbers", "") != numbers()) {
    return false;
  }
  return began(holder.value("pid", 0)) != holder.value("began", "?");
}

}  // namespace

ServerLease::ServerLease(store::Store& store, std::string url, std::function<void(std::string)> lost)
    : store_(store), lost_(std::move(lost)) {
  constexpr int kTries = 5;  // somebody else may take what was left in the meantime
  for (int i = 0;; ++i) {
    const auto outcome = store_.write(store::Acquire{kName, holder_text(url), kLeaseSeconds});
    if (outcome) {
      fence_ = outcome->answers.front().fence;
      break;
    }
    const store::Lease lease = store_.lease(kName);
    const Json holder = Json::parse(lease.holder, nullptr, false);
    if (i < kTries && is_surely_dead(holder)) {
      (void)store_.write(store::Release{kName, lease.fence});  // refused: somebody else did so first
      continue;
    }
    const std::string who = holder.is_object() ? "process " + std::to_string(holder.value("pid", 0)) + " on " +
                                                     holder.value("host", "?") + " at " + holder.value("url", "?")
                                               : lease.holder;
    throw Error(
        "another server has this store: " + who,
        "use that one, stop it, or, if it is dead, wait " + std::to_string(static_cast<int>(lease.seconds) + 1) + " s");
  }
  thread_ = std::thread([this] { keep(); });
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
    // It runs out by itself.
  }
}

void ServerLease::keep() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kRenewEvery, [this] { return ending_; })) {
    lock.unlock();
    try {
      if (const auto outcome = store_.write(store::Renew{kName, fence_, kLeaseSeconds}); !outcome) {
        lost_(outcome.error().why);
        lock.lock();
        return;
      }
    } catch (const std::exception&) {
      // The store can not be written now; nor can anybody's request be, and the fence judges all that comes later.
    }
    lock.lock();
  }
}

}  // namespace sinew::cli
