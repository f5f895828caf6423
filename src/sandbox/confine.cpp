#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/joined.h"
#include "base/proc.h"
#include "base/size_text.h"
#include "base/write_fence.h"
#include "sandbox/broker.h"
#include "sandbox/filter.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

namespace sinew::sandbox {
namespace {

constexpr const char* kWithoutSandbox =
    "use another kernel, or --no-sandbox if you trust the model like a program that you run";
// checkpoints/ has the run's checkpoints, and links to the newest and the best one. .writers/ has the folders in which
// the run's writers prepare checkpoints and links.
constexpr const char* kLinksFolders[] = {"checkpoints", WriteFence::kDirectory};
// The other folders of a run in which workers make files. A confined worker cannot make them itself.
constexpr const char* kFilesFolders[] = {"model", "revoked"};
constexpr uint64_t kMoreThreads = 4096;

// A thread that exists already would not be confined, or only by some parts of the sandbox.
void check_single_thread() {
  if (const int64_t threads = process_row(::getpid()).threads; threads != 1) {
    throw Error("SANDBOX_UNAVAILABLE",
                "a library has started " + std::to_string(threads - 1) + " threads in sinew-worker before its sandbox",
                "unset LD_PRELOAD, and install libtorch as ./dev build does");
  }
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return;
  struct stat facts {};
  if (errno == EEXIST && ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) return;
  throw Error("SANDBOX_UNAVAILABLE", "cannot create the folder " + path + ": " + std::strerror(errno),
              "let the user of this process write to the run directory, and move away what has the name");
}

// The confined process may make and remove folders in checkpoints/ and .writers/ only. So the mark stays, and no folder
// with links gets another name of the run.
void allow_run(WriteRules& rules, const std::string& run_directory) {
  make_folder(run_directory + "/" + kMark);
  for (const char* folder : kFilesFolders) make_folder(run_directory + "/" + folder);
  rules.allow_files(run_directory);
  for (const char* folder : kLinksFolders) {
    make_folder(run_directory + "/" + folder);
    rules.allow_all(run_directory + "/" + folder);
  }
}

void set_limit(__rlimit_resource_t resource, uint64_t value) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  if (::setrlimit(resource, &limit) != 0)
    throw Error("SANDBOX_UNAVAILABLE", std::string("cannot set a limit: ") + std::strerror(errno), kWithoutSandbox);
}

// RLIMIT_DATA counts private memory that can be written. RLIMIT_AS would also count what libtorch only reserves.
void set_limits(uint64_t memory_bytes) {
  if (memory_bytes > 0) set_limit(RLIMIT_DATA, memory_bytes);
  set_limit(RLIMIT_CORE, 0);
  uint64_t threads = 0;  // the kernel counts the threads of the user, and does not limit root
  for (const ProcessRow& row : all_processes()) threads += static_cast<uint64_t>(std::max<int64_t>(row.threads, 0));
  set_limit(RLIMIT_NPROC, threads + kMoreThreads);
}

// Root keeps only the right to read and write files of other users: training may need it, and Landlock bounds it.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  constexpr uint32_t kKept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  sets[0] = {sets[0].effective & kKept, sets[0].permitted & kKept, 0};
  sets[1] = {};
  if (::syscall(SYS_capset, &header, sets) != 0)
    throw Error("SANDBOX_UNAVAILABLE", std::string("cannot give up rights: ") + std::strerror(errno), kWithoutSandbox);
}

}  // namespace

Protection protection_of_this_kernel() {
  return {has_filters(), landlock_version()};
}

void check_complete(const Protection& protection) {
  if (protection.complete()) return;
  const bool landlock = Protection{true, protection.landlock}.complete();
  const std::string missing = !protection.seccomp ? landlock ? "seccomp" : "seccomp and no Landlock" : "Landlock";
  throw UsageError(
      "SANDBOX_UNAVAILABLE", "this kernel has no " + missing + " that can confine the code of a model",
      "use Linux 5.19 or later with Landlock (lsm=landlock,...), or --no-sandbox if you trust the model like a "
      "program that you run");
}

void confine(const Confinement& confinement) {
  check_complete(protection_of_this_kernel());
  check_single_thread();
  WriteRules rules;
  if (!confinement.run_directory.empty()) allow_run(rules, confinement.run_directory);
  rules.allow_file("/dev/null");
  std::optional<Broker> broker;
  if (confinement.links) broker.emplace(*confinement.links);
  set_limits(confinement.memory_bytes);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw Error("SANDBOX_UNAVAILABLE", std::string("cannot forbid new rights: ") + std::strerror(errno),
                kWithoutSandbox);
  rules.restrict_self();
  drop_capabilities();
  const int listener = install(filter_for(::getpid(), broker.has_value()), broker.has_value());
  if (!broker) return;
  broker->serve(listener);
  ::close(listener);
}

std::string to_sentence(const Protection& protection, const std::string& writable, bool links,
                        const std::vector<std::string>& hosts, uint64_t memory_bytes) {
  std::string text = "sandbox: seccomp, Landlock (version " + std::to_string(protection.landlock) +
                     "); writes: " + (writable.empty() ? "none" : "only " + writable) + "; network: ";
  text += !links          ? "none"
          : hosts.empty() ? "only processes of this run on this machine"
                          : "only processes of this run on this machine, and " + joined(hosts, ", ");
  return text + "; no new processes; memory: " + size_text(static_cast<int64_t>(memory_bytes)) +
         "; it may read what you can read";
}

bool is_untrusted(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return false;
  std::error_code unknown;
  for (fs::path at = fs::weakly_canonical(path, unknown); at.has_relative_path(); at = at.parent_path()) {
    if (at.filename() == ".sinew" || fs::is_directory(at / kMark, unknown)) return true;
  }
  return false;
}

}  // namespace sinew::sandbox
