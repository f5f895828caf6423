#include "jobs/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/proc.h"

namespace sinew::jobs {
namespace {

constexpr int kCpuPeriodUs = 100'000;

std::string group_name(const std::string& mark) {
  return "sinew-" + mark;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// Returns an empty string on success, else the error.
std::string write_text(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return std::strerror(errno);
  const bool good = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int code = errno;
  ::close(file);
  errno = code;
  return good ? "" : std::strerror(code);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

struct Mount {
  std::string root, point, type, options;
};

std::vector<Mount> cgroup_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    if (dash[1] == "cgroup" || dash[1] == "cgroup2") mounts.push_back({words[3], words[4], dash[1], dash[3]});
  }
  return mounts;
}

// Returns the directory of a group below a mount that shows only the hierarchy below its `root`.
std::string place_under(const Mount& mount, const std::string& path) {
  const bool below_root = mount.root == "/" || path == mount.root || path.starts_with(mount.root + "/");
  std::string rest = mount.root == "/" ? path : below_root ? path.substr(mount.root.size()) : "";
  if (rest == "/") rest.clear();
  return mount.point + rest;
}

// Finds out with a forked child whether a process may enter the group. Returns 0 or errno. A process that may create a
// group may still be unable to enter it: a delegated hierarchy requires rights on the common ancestor of both groups.
int try_entering(const std::string& group) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(enter_group(group) ? 0 : errno);
  if (child < 0) return errno;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

// Creates the group and returns its path, or "" with the error in `why`.
std::string create_group(const std::string& parent, const std::string& name, std::string& why) {
  const std::string group = parent + "/" + name;
  if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
    why = std::strerror(errno);
    return "";
  }
  const int code = try_entering(group);
  if (code == 0) return group;
  why = std::string("it cannot be entered: ") + std::strerror(code);
  ::rmdir(group.c_str());
  return "";
}

struct Wanted {
  const char* resource;
  const char* controller;
  std::vector<std::pair<std::string, std::string>> files;  // the first file must be written; the others may be missing
};

std::vector<Wanted> wanted_of(const spec::ResourceOptions& resources, bool unified) {
  std::vector<Wanted> wanted;
  if (resources.memory > 0) {
    const std::string bytes = std::to_string(resources.memory);
    if (unified) {
      wanted.push_back({"memory", "memory", {{"memory.max", bytes}, {"memory.swap.max", "0"}}});
    } else {
      wanted.push_back(
          {"memory", "memory", {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes}}});
    }
  }
  if (resources.cpus > 0) {
    const std::string quota = std::to_string(std::max<int64_t>(1000, std::llround(resources.cpus * kCpuPeriodUs)));
    const std::string period = std::to_string(kCpuPeriodUs);
    if (unified) {
      wanted.push_back({"cpus", "cpu", {{"cpu.max", quota + " " + period}}});
    } else {
      wanted.push_back({"cpus", "cpu", {{"cpu.cfs_quota_us", quota}, {"cpu.cfs_period_us", period}}});
    }
  }
  if (resources.pids > 0) wanted.push_back({"pids", "pids", {{"pids.max", std::to_string(resources.pids)}}});
  return wanted;
}

std::string set(const std::string& group, const Wanted& wanted) {
  const std::string why = write_text(group + "/" + wanted.files[0].first, wanted.files[0].second);
  for (size_t i = 1; i < wanted.files.size() && why.empty(); ++i)
    write_text(group + "/" + wanted.files[i].first, wanted.files[i].second);
  return why;
}

int64_t number_after(const std::string& text, const std::string& word) {
  std::istringstream stream(text);
  std::string name;
  int64_t number = 0;
  while (stream >> name >> number) {
    if (name == word) return number;
  }
  return 0;
}

void note(Limits& limits, const Wanted& wanted, const std::string& why) {
  const bool watched = std::string_view(wanted.resource) != "cpus";
  limits.why_not += (limits.why_not.empty() ? "" : "; ") + std::string("resources.") + wanted.resource + ": " + why +
                    (watched ? ", so sinew checks it twice a second" : ", so it only sets OMP_NUM_THREADS");
}

}  // namespace

CgroupPaths parse_cgroup_paths(const std::string& cgroup, const std::string& mountinfo) {
  CgroupPaths paths;
  const std::vector<Mount> mounts = cgroup_mounts(mountinfo);
  for (const std::string& line : split(cgroup, '\n')) {  // "4:memory:/path" or "0::/path"
    const size_t first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    for (const Mount& mount : mounts) {
      if (line.starts_with("0::") && mount.type == "cgroup2") paths.unified = place_under(mount, path);
      if (mount.type != "cgroup") continue;
      const std::vector<std::string> options = split(mount.options, ',');
      for (const std::string& controller : controllers) {
        if (std::find(options.begin(), options.end(), controller) != options.end())
          paths.by_controller[controller] = place_under(mount, path);
      }
    }
  }
  return paths;
}

CgroupPaths own_cgroup_paths() {
  return parse_cgroup_paths(kernel_text("/proc/self/cgroup"), kernel_text("/proc/self/mountinfo"));
}

Limits make_groups(const CgroupPaths& paths, const std::string& mark, const spec::ResourceOptions& resources) {
  Limits limits;
  const std::string name = group_name(mark);
  std::string why = "there is no version 2 hierarchy";
  if (!paths.unified.empty()) {
    std::string group;
    // The loop first tries to make groups below this process's own group. That fails if the group holds processes,
    // because it then cannot pass its controllers on. The loop then tries beside the own group.
    for (const std::string& parent : {paths.unified, paths.unified.substr(0, paths.unified.rfind('/'))}) {
      if (!exists(parent + "/cgroup.procs")) continue;
      for (const Wanted& wanted : wanted_of(resources, true))
        write_text(parent + "/cgroup.subtree_control", std::string("+") + wanted.controller);
      if (!group.empty()) ::rmdir(group.c_str());
      group = create_group(parent, name, why);
      const std::vector<Wanted> all = wanted_of(resources, true);
      const bool fits = std::all_of(all.begin(), all.end(),
                                    [&](const Wanted& wanted) { return exists(group + "/" + wanted.files[0].first); });
      if (!group.empty() && fits) break;
    }
    if (!group.empty()) limits.groups.push_back(group);
    for (const Wanted& wanted : wanted_of(resources, true)) {
      if (!group.empty() && set(group, wanted).empty()) limits.enforced.insert(wanted.resource);
    }
  }
  for (const Wanted& wanted : wanted_of(resources, false)) {
    if (limits.enforced.contains(wanted.resource)) continue;
    const auto place = paths.by_controller.find(wanted.controller);
    if (place == paths.by_controller.end()) {
      note(limits, wanted, "no control group for it can be created (" + why + ")");
      continue;
    }
    const std::string group = create_group(place->second, name, why);
    const std::string failed = group.empty() ? why : set(group, wanted);
    if (!group.empty()) limits.groups.push_back(group);
    if (failed.empty()) {
      limits.enforced.insert(wanted.resource);
    } else {
      note(limits, wanted, "cannot create a control group in " + place->second + ": " + failed);
    }
  }
  return limits;
}

int64_t memory_kills(const std::vector<std::string>& groups) {
  int64_t kills = 0;
  for (const std::string& group : groups) {
    kills += number_after(kernel_text(group + "/memory.events"), "oom_kill");
    kills += number_after(kernel_text(group + "/memory.oom_control"), "oom_kill");
  }
  return kills;
}

int64_t machine_memory_kills() {
  return number_after(kernel_text("/proc/vmstat"), "oom_kill");
}

bool enter_group(const std::string& group) {
  return write_text(group + "/cgroup.procs", std::to_string(::getpid())).empty();
}

void prefer_for_memory_killer() {
  write_text("/proc/self/oom_score_adj", "500");  // the kernel then kills the command before the reapers
}

bool is_group_of(const std::string& path, const std::string& mark) {
  constexpr long kVersion1 = 0x27e0eb, kVersion2 = 0x63677270;  // from linux/magic.h
  struct statfs facts {};
  return path.ends_with("/" + group_name(mark)) && ::statfs(path.c_str(), &facts) == 0 &&
         (facts.f_type == kVersion1 || facts.f_type == kVersion2);
}

std::set<pid_t> members_of(const std::vector<std::string>& groups) {
  std::set<pid_t> members;
  for (const std::string& group : groups) {
    std::istringstream stream(kernel_text(group + "/cgroup.procs"));
    for (pid_t pid = 0; stream >> pid;) members.insert(pid);
  }
  members.erase(0);
  return members;
}

void remove_groups(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) ::rmdir(group.c_str());
}

}  // namespace sinew::jobs
