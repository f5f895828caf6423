#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "task/task.h"

namespace sinew::task {

TaskFile::TaskFile(const Task& task) : file_(::memfd_create("sinew-task", MFD_CLOEXEC)) {
  const std::string text = to_json(task);
  const ssize_t size = static_cast<ssize_t>(text.size());
  if (file_ < 0 || ::write(file_, text.data(), text.size()) != size)
    throw Error("TASK_NO_MEMORY", std::string("cannot pass a task to sinew-worker: ") + std::strerror(errno),
                "free memory, or raise the limit of open files (ulimit -n)");
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
