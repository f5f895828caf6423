#include "study/leader.h"

#include <unistd.h>

#include "base/hex.h"
#include "base/process.h"

namespace sinew::study {
namespace {

constexpr double kCacheSeconds = 1;

std::string leaders_of(const std::string& directory) {
  return rundir::file_in(directory, rundir::kLeaders);
}

std::string new_name() {
  std::string name = host_name() + "-" + std::to_string(::getpid()) + "-" + random_hex(4);
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

}  // namespace

StudyLeader::StudyLeader(Disk& disk, std::string directory, Clock& clock)
    : disk_(disk), directory_(std::move(directory)), clock_(clock), name_(new_name()) {
  // Takes the lock of the study first. Otherwise another leader could remove the directory of this leader before this
  // leader has locked it.
  const auto study_lock = lock();
  remove_dead_leaders();
  const std::string own = leaders_of(directory_) + "/" + name_;
  disk_.make_directories(own);
  auto own_lock = rundir::RunLock::take(own, clock_);
  if (!own_lock)
    throw Error("STUDY_CANNOT_LOCK", own_lock.error(), "keep the study's directory on a file system with locks");
  alive_ = std::move(*own_lock);
}

StudyLeader::~StudyLeader() {
  try {
    disk_.remove_all(leaders_of(directory_) + "/" + name_);
  } catch (const Error&) {
    // Ignores the error: the next leader removes the directory.
  }
}

void StudyLeader::remove_dead_leaders() const {
  if (!disk_.exists(leaders_of(directory_))) return;
  for (const Disk::Entry& entry : disk_.list(leaders_of(directory_))) {
    const std::string path = leaders_of(directory_) + "/" + entry.name;
    if (!rundir::lock_is_held(path)) disk_.remove_all(path);
  }
}

std::optional<rundir::RunLock> StudyLeader::try_lock() const {
  auto lock = rundir::RunLock::take(directory_, clock_);
  if (!lock) return std::nullopt;
  return std::move(*lock);
}

rundir::RunLock StudyLeader::lock() const {
  const double began = clock_.monotonic_seconds();
  while (true) {
    auto lock = rundir::RunLock::take(directory_, clock_);
    if (lock) return std::move(*lock);
    if (clock_.monotonic_seconds() - began >= kLockSeconds)
      throw Error("STUDY_BUSY", lock.error(),
                  "a process holds the study only for an instant: if this one is stopped, continue or end it");
  }
}

bool StudyLeader::abandoned(const std::string& leader, const std::string& run_directory) {
  const double now = clock_.monotonic_seconds();
  const auto [seen, first] = seen_.try_emplace(leader);
  if (first || now - seen->second.at >= kCacheSeconds) {
    const bool is_name = !leader.empty() && leader.find('/') == std::string::npos;
    seen->second = {now, is_name && rundir::lock_is_held(leaders_of(directory_) + "/" + leader)};
  }
  return !seen->second.alive && !rundir::lock_is_held(run_directory);
}

}  // namespace sinew::study
