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

// Returns 0 once the lock is taken, else an errno. Retries for a while, to outwait a process that holds the lock only
// for an instant.
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

// Returns the line that the holder wrote into the file. A holder that just took the lock may not have written it yet.
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

// We use flock and not a record lock (fcntl), because a flock belongs to one opening of the file. So a second taker in
// the same process is refused, too, and closing another descriptor of the same file does not release the lock. The
// kernel releases it however the process dies.
std::expected<RunLock, std::string> RunLock::take(const std::string& directory, Clock& clock) {
  const std::string path = join(directory, ".lock");
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) refuse("open", path, errno);
  RunLock lock(descriptor);
  const int code = lock_patiently(descriptor, clock);
  if (code == EWOULDBLOCK) return std::unexpected(directory + " is in use by " + holder_in(descriptor));
  if (code != 0) refuse("lock", path, code);
  const std::string line = holder_line();
  // Only people read this line. If it cannot be written (disk full), the lock still holds.
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, line.data(), line.size(), 0) < 0) errno = 0;
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);  // the destructor of `other` releases the lock that we held
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace sinew::checkpoint
