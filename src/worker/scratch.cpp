#include "worker/scratch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace sinew::worker {
namespace {

Error no_scratch(const std::string& path) {
  return {"PLAN_NO_SCRATCH", "cannot make a directory like " + path + ": " + std::strerror(errno),
          "set TMPDIR to a directory with free space"};
}

// Waits for the end of the other process. Signals of a terminal reach this process, too.
[[noreturn]] void remove_at_end(int alive, const std::string& path) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
  setsid();
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    close(stream);  // a reader of a pipe waits for them
  char none = 0;
  while (read(alive, &none, 1) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  _exit(0);
}

}  // namespace

Scratch::Scratch() {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  path_ = ((unknown ? std::filesystem::path("/tmp") : folder) / "sinew-plan-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw no_scratch(path_);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) == 0) {
    remover_ = fork();
    if (remover_ == 0) {
      close(ends[1]);
      remove_at_end(ends[0], path_);
    }
    close(ends[0]);
    alive_ = ends[1];
  }
  if (remover_ > 0) return;
  const Error error = no_scratch(path_);
  rmdir(path_.c_str());
  throw Error(error);
}

Scratch::~Scratch() {
  close(alive_);
  while (waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sinew::worker
