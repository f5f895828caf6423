#include "base/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace sinew {

std::string kernel_text(const std::string& path, size_t most) {
  constexpr size_t kPiece = 4096;
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  while (text.size() < most) {
    const size_t before = text.size();
    text.resize(std::min(before + kPiece, most));
    const ssize_t got = ::read(file, text.data() + before, text.size() - before);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  ::close(file);
  return text;
}

ProcessRow parse_stat(const std::string& text) {
  ProcessRow row;
  const size_t name_end = text.rfind(')');  // "pid (name) state parent ..."; a name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return row;
  int parent = 0;
  unsigned long long user = 0, system = 0, started = 0;
  long long threads = 0, pages = 0;
  const int found =
      std::sscanf(text.c_str() + name_end + 2,
                  "%c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %lld %*d %llu %*u %lld",
                  &row.state, &parent, &user, &system, &threads, &started, &pages);
  if (found != 7) return {};
  row.pid = std::atoi(text.c_str());
  row.parent = parent;
  row.started = started;
  row.cpu_ticks = user + system;
  row.memory_bytes = pages * ::sysconf(_SC_PAGESIZE);
  row.threads = threads;
  return row;
}

ProcessRow process_row(pid_t pid) {
  return parse_stat(kernel_text("/proc/" + std::to_string(pid) + "/stat"));
}

std::string boot_id() {
  const std::string text = kernel_text("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

}  // namespace sinew
