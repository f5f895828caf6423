#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "task/task.h"

namespace sinew::task {

namespace {

// Writes the whole text. If that fails, returns false, with the reason in errno. The kernel may write a part of the
// text without an error; then the next call of write() gives the reason.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(file, text.data(), text.size());
    if (done == 0) errno = EIO;  // no progress and no reason: do not loop for ever
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

TaskFile::TaskFile(const Task& task) : file_(::memfd_create("sinew-task", MFD_CLOEXEC)) {
  if (file_ >= 0 && write_all(file_, to_json(task))) return;
  const int code = errno;
  if (file_ >= 0) ::close(file_);
  throw Error("TASK_NO_MEMORY", std::string("cannot pass a task to sinew-worker: ") + std::strerror(code),
              "free memory, or raise the limits of open files and of file sizes (ulimit -n, ulimit -f)");
}

TaskFile::~TaskFile() {
  if (file_ >= 0) ::close(file_);
}

TaskFile::TaskFile(TaskFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

std::string TaskFile::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

std::string TaskFile::path_after_exec() const {
  ::fcntl(file_, F_SETFD, 0);  // clears FD_CLOEXEC
  return "/proc/self/fd/" + std::to_string(file_);
}

}  // namespace sinew::task
