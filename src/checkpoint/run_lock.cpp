#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"

namespace sinew::checkpoint {
namespace {

std::string holder_line() {
  char host[256] = "unknown host";
  ::gethostname(host, sizeof host - 1);
  return "pid " + std::to_string(::getpid()) + " on " + host + "\n";
}

constexpr double kPauseSeconds = 0.01;

// 0: locked; else errno. A holder of an instant is waited for.
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

// What the holder wrote; it may be just about to.
std::string holder_in(int descriptor) {
  char text[400] = {};
  const ssize_t got = ::pread(descriptor, text, sizeof text - 1, 0);
  std::string holder(text, got > 0 ? static_cast<size_t>(got) : 0);
  if (const size_t end = holder.find('\n'); end != std::string::npos) holder.resize(end);
  return holder.starts_with("pid ") ? holder : "another process";
}

[[noreturn]] void refuse(const char* what, const std::string& path, int code) {
  throw Error(std::string("cannot ") + what + " " + path + ": " + std::strerror(code),
              "the directory must be yours to write, on a file system with locks");
}

}  // namespace

// flock, not a record lock: it belongs to this opening of the file, so a second taker in the same process is refused
// too, closing some other descriptor of the file does not let go, and the kernel frees it however the process dies.
std::expected<RunLock, std::string> RunLock::take(const std::string& directory, Clock& clock) {
  const std::string path = join(directory, ".lock");
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) refuse("open", path, errno);
  RunLock lock(descriptor);
  const int code = lock_patiently(descriptor, clock);
  if (code == EWOULDBLOCK) return std::unexpected(directory + " is in use by " + holder_in(descriptor));
  if (code != 0) refuse("lock", path, code);
  const std::string line = holder_line();
  // For people only: if it can not be written (disk full) the lock holds all the same.
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, line.data(), line.size(), 0) < 0) errno = 0;
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);  // what this one held goes with `other`
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace sinew::checkpoint
