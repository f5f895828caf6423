#include "train/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/machine.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/resident_memory.h"

namespace sinew::train {
namespace {

void write_text(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t done = ::write(file, text.data(), text.size());
  ::close(file);
}

// RLIMIT_DATA counts what is reserved, which is more than what is resident: stacks of threads, and what an allocator
// keeps for later. So a child that nearly needs most_bytes may end early, but none ever exceeds them: a group may be
// set up so that the kernel ends all of its processes together.
void limit_memory(int64_t most_bytes) {
  write_text("/proc/self/oom_score_adj", "1000");
  if (most_bytes < std::numeric_limits<int64_t>::max()) {
    const ResidentMemory now = resident_memory();
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = std::min<rlim_t>(
        limit.rlim_max, static_cast<rlim_t>(now.data_space + std::max<int64_t>(0, most_bytes - now.held)));
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

bool write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(output, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

[[noreturn]] void run_child(const ChildOptions& options, const std::function<void(const ChildWrite&)>& work, int output,
                            pid_t parent) {
  forget_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  limit_memory(options.most_bytes);
  bool written = true;
  try {
    work([&](std::string_view text) { written = written && write_all(output, text); });
  } catch (...) {  // nothing may run on in a second copy of this process
    written = false;
  }
  ::_exit(written ? 0 : 1);  // destructors would only take time
}

// Reads what the child writes until it ends. Returns why it did not wait for that. Ends the child if it holds too much.
ChildEnd read_all(int input, pid_t child, const ChildOptions& options, std::string& text) {
  const std::string status = "/proc/" + std::to_string(child) + "/status";
  for (;;) {
    if (options.stop_signals != nullptr && options.stop_signals->load() > 0) return ChildEnd::stopped;
    if (system_clock().monotonic_seconds() > options.ends_at) return ChildEnd::too_long;
    pollfd waits{input, POLLIN, 0};
    constexpr int kLookMilliseconds = 20;
    if (::poll(&waits, 1, kLookMilliseconds) <= 0) {
      if (resident_memory(kernel_text(status)).held > options.most_bytes) ::kill(child, SIGKILL);
      continue;
    }
    char part[4096];
    const ssize_t count = ::read(input, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ChildEnd::measured;
    text.append(part, static_cast<size_t>(count));
  }
}

}  // namespace

// Whether the error means that memory ran out. An error in a shard has the text of the one that caused it.
bool ran_out(const std::exception& error) {
  const std::string_view text = error.what();
  const auto says = [&](const char* words) { return text.find(words) != std::string_view::npos; };
  return shortage_of(error) || says("bad_alloc") || says("not enough memory") || says("allocate memory") ||
         says("Resource temporarily unavailable");  // a thread whose stack found no room
}

ChildResult in_child(const ChildOptions& options, const std::function<void(const ChildWrite&)>& work) {
  ChildResult result;
  if (process_row(::getpid()).threads != 1) return result;  // the child would have only one of them
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t self = ::getpid(), child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_child(options, work, ends[1], self);
  }
  ::close(ends[1]);
  if (child > 0) result.end = read_all(ends[0], child, options, result.text);
  ::close(ends[0]);
  if (child < 0) return result;
  if (result.end != ChildEnd::measured) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // A signal for the whole group of processes has also ended the child.
  if (options.stop_signals != nullptr && options.stop_signals->load() > 0) result.end = ChildEnd::stopped;
  result.killed = WIFSIGNALED(status);
  return result;
}

}  // namespace sinew::train
