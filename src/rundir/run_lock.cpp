#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/proc.h"
#include "base/process.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

constexpr double kPauseSeconds = 0.01;
// A user who may read the file could lock it, and then no training could begin in the directory.
constexpr mode_t kLockMode = 0600;

// Takes the lock and returns 0, or returns the errno of the failure. If another process holds the lock, waits up to
// kPatienceSeconds, because lock_is_held() holds it for an instant.
int lock_patiently(int descriptor, Clock& clock) {
  for (double waited = 0;; waited += kPauseSeconds) {
    int result = 0;
    do result = ::flock(descriptor, LOCK_EX | LOCK_NB);
    while (result < 0 && errno == EINTR);
    if (result == 0) return 0;
    if (errno != EWOULDBLOCK || waited >= RunLock::kPatienceSeconds) return errno;
    clock.sleep_seconds(kPauseSeconds);
  }
}

// Returns nullopt if the file names no holder, for example because the holder has not written its line yet.
std::optional<LockHolder> holder_in(int descriptor) {
  char text[400] = {};
  const ssize_t got = ::pread(descriptor, text, sizeof text - 1, 0);
  const std::string line(text, got > 0 ? static_cast<size_t>(got) : 0);
  constexpr std::string_view kBefore = "pid ", kBetween = " on ";
  LockHolder holder;
  if (!line.starts_with(kBefore)) return std::nullopt;
  const char* end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data() + kBefore.size(), end, holder.pid);
  const std::string_view after(rest, static_cast<size_t>(end - rest));
  if (error != std::errc() || holder.pid <= 0 || !after.starts_with(kBetween)) return std::nullopt;
  holder.host = after.substr(kBetween.size(), after.find('\n') - kBetween.size());
  return holder;
}

// Returns 0 if the path leads to the open file, ESTALE if it leads to another file, or the errno of the failure.
int compare_file(int descriptor, const std::string& path) {
  struct stat open {
  }, there{};
  if (::fstat(descriptor, &open) != 0 || ::stat(path.c_str(), &there) != 0) return errno;
  return open.st_dev == there.st_dev && open.st_ino == there.st_ino ? 0 : ESTALE;
}

// Returns the process of this machine that took a flock of the file, by /proc/locks; 0 if it is not in this container.
// Returns nullopt if no process holds a lock. For a file of another user, which this process cannot open.
std::optional<pid_t> kernel_lock_holder(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  char file[80];
  std::snprintf(file, sizeof file, " %02x:%02x:%llu ", ::major(facts.st_dev), ::minor(facts.st_dev),
                static_cast<unsigned long long>(facts.st_ino));
  std::istringstream locks(kernel_text("/proc/locks", size_t{64} << 20U));
  for (std::string line; std::getline(locks, line);) {  // "1: FLOCK  ADVISORY  WRITE 4711 fd:00:4718 0 EOF"
    if (line.find(" FLOCK ") == line.npos || line.find(file) == line.npos) continue;
    std::string number, kind, advisory, access;
    pid_t pid = 0;
    std::istringstream(line) >> number >> kind >> advisory >> access >> pid;
    return std::max(pid, 0);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const char* what, const std::string& path, int code) {
  throw Error("RUN_NO_LOCK", std::string("cannot ") + what + " " + path + ": " + std::strerror(code),
              "the directory must be yours to write, on a file system with locks");
}

}  // namespace

std::string to_string(const LockHolder& holder) {
  return "pid " + std::to_string(holder.pid) + " on " + holder.host;
}

// Uses flock(2) and not a record lock of fcntl(2), because a flock belongs to one open file description. So a second
// call in the same process is refused, too. Closing another descriptor of the file does not release the lock. The
// kernel releases it however the process dies.
std::expected<RunLock, std::string> RunLock::take(const std::string& directory, Clock& clock) {
  const std::string path = file_in(directory, kLockFile);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode);
  if (descriptor < 0) refuse("open", path, errno);
  ::fchmod(descriptor, kLockMode);  // earlier versions let others read it; fails if the file is another user's
  RunLock lock(descriptor);
  const int code = lock_patiently(descriptor, clock);
  if (code == 0 && compare_file(descriptor, path) != 0)
    return std::unexpected(path + " was removed or replaced at this moment; try again");
  if (code == EWOULDBLOCK) {
    const auto holder = holder_in(descriptor);
    return std::unexpected(directory + " is in use by " + (holder ? to_string(*holder) : "another process"));
  }
  if (code != 0) refuse("lock", path, code);
  const std::string line = to_string(LockHolder{::getpid(), host_name()}) + "\n";
  // The lock holds even if the disk is full and this line cannot be written.
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, line.data(), line.size(), 0) < 0) errno = 0;
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  // `other` now holds the lock that this object had, and its destructor will release it
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RunPlace::RunPlace(std::string directory, int lock) : directory_(std::move(directory)) {
  descriptor_ = lock >= 0 ? ::fcntl(lock, F_DUPFD_CLOEXEC, 0)
                          : ::open(file_in(directory_, kLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

RunPlace::~RunPlace() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string RunPlace::lost() const {
  if (descriptor_ < 0) return "";
  const std::string path = file_in(directory_, kLockFile);
  switch (compare_file(descriptor_, path)) {
    case ENOENT:
    case ENOTDIR:
      if (::access(directory_.c_str(), F_OK) == 0) return path + " was removed, so another process could train there";
      return directory_ + " was moved or removed";
    case ESTALE: return "another directory or another lock file is at " + path + " now";
    default: return "";
  }
}

bool lock_is_held(const std::string& directory) {
  const int descriptor = ::open(file_in(directory, kLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return errno == EACCES && kernel_lock_holder(file_in(directory, kLockFile)).has_value();
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
  ::close(descriptor);  // also releases the lock if this call has just got it
  return held;
}

std::string leading_place(const std::string& study) {
  namespace fs = std::filesystem;
  std::error_code code;
  for (fs::directory_iterator it(file_in(study, kLeaders), code), end; !code && it != end; it.increment(code)) {
    if (lock_is_held(it->path().string())) return it->path().string();
  }
  return "";
}

std::string running_place(const std::string& directory) {
  return lock_is_held(directory) ? directory : leading_place(directory);
}

std::optional<LockHolder> lock_holder(const std::string& directory) {
  const int descriptor = ::open(file_in(directory, kLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) {
    if (errno != EACCES) return std::nullopt;
    const auto pid = kernel_lock_holder(file_in(directory, kLockFile));
    return pid && *pid > 0 ? std::optional(LockHolder{*pid, host_name()}) : std::nullopt;
  }
  auto holder = holder_in(descriptor);
  ::close(descriptor);
  return holder;
}

}  // namespace sinew::rundir
