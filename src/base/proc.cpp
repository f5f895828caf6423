#include "base/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sstream>

#include "base/cgroup.h"

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
  const size_t name_end = text.rfind(')');  // "pid (name) state parent ..."; the name may hold any characters
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return row;
  int parent = 0;
  unsigned long long user = 0, system = 0, started = 0;
  long long gone_user = 0, gone_system = 0;
  long long threads = 0, pages = 0;
  const int found =
      std::sscanf(text.c_str() + name_end + 2,
                  "%c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %lld %*d %llu %*u %lld",
                  &row.state, &parent, &user, &system, &gone_user, &gone_system, &threads, &started, &pages);
  if (found != 9) return {};
  row.pid = std::atoi(text.c_str());
  row.parent = parent;
  row.started = started;
  row.cpu_ticks = user + system;
  row.gone_ticks = static_cast<uint64_t>(gone_user + gone_system);
  row.memory_bytes = pages * ::sysconf(_SC_PAGESIZE);
  row.threads = threads;
  return row;
}

ProcessRow process_row(pid_t pid) {
  return parse_stat(kernel_text("/proc/" + std::to_string(pid) + "/stat"));
}

double process_age_seconds() {
  const ProcessRow own = process_row(getpid());
  timespec now{};
  if (own.pid == 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double since_boot = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  const double began = static_cast<double>(own.started) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return std::max(0.0, since_boot - began);
}

std::vector<ProcessRow> all_processes() {
  std::vector<ProcessRow> all;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const ProcessRow row = process_row(std::atoi(entry->d_name));
    if (row.pid > 0) all.push_back(row);
  }
  ::closedir(directory);
  return all;
}

std::vector<ProcessRow> below(const std::vector<ProcessRow>& all, const std::set<pid_t>& ancestors) {
  std::multimap<pid_t, const ProcessRow*> children;
  for (const ProcessRow& row : all) children.emplace(row.parent, &row);
  std::set<pid_t> seen = ancestors;
  std::vector<pid_t> open(ancestors.begin(), ancestors.end());
  std::vector<ProcessRow> found;
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (auto [child, end] = children.equal_range(parent); child != end; ++child) {
      if (!seen.insert(child->second->pid).second) continue;
      found.push_back(*child->second);
      open.push_back(child->second->pid);
    }
  }
  return found;
}

std::set<int> own_cores() {
  std::set<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const auto online = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  for (int core = 0; core < (known ? CPU_SETSIZE : online); ++core) {
    if (!known || CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

int64_t usable_cores() {
  const auto own = std::max<int64_t>(1, static_cast<int64_t>(own_cores().size()));
  const auto limit = static_cast<int64_t>(std::ceil(cgroup_cores()));
  return limit > 0 ? std::min(own, limit) : own;
}

double busy_seconds(const std::string& stat, const std::set<int>& cores, double ticks_per_second) {
  double ticks = 0;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;  // "cpu " is the sum of all cores
    int core = 0;
    unsigned long long user = 0, nice = 0, system = 0, irq = 0, soft = 0, steal = 0;
    const int found = std::sscanf(line.c_str(), "cpu%d %llu %llu %llu %*u %*u %llu %llu %llu", &core, &user, &nice,
                                  &system, &irq, &soft, &steal);
    if (found == 7 && cores.contains(core)) ticks += static_cast<double>(user + nice + system + irq + soft + steal);
  }
  return ticks / ticks_per_second;
}

CpuTimes cpu_times(const std::set<int>& cores) {
  const auto rate = static_cast<double>(::sysconf(_SC_CLK_TCK));
  CpuTimes times{busy_seconds(kernel_text("/proc/stat"), cores, rate), 0};
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime})
      times.own += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  }
  for (const ProcessRow& row : below(all_processes(), {::getpid()}))
    times.own += static_cast<double>(row.cpu_ticks + row.gone_ticks) / rate;
  return times;
}

std::string boot_id() {
  const std::string text = kernel_text("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

}  // namespace sinew
