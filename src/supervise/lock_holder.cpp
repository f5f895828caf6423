#include "supervise/lock_holder.h"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/process.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"

namespace sinew::supervise {
namespace {

// Returns whether the process has the file open. The pid in a lock file is not enough: the file may hold any number,
// and another process may have that pid by now. Throws Error if this user has no permission to inspect the process.
bool has_open(pid_t pid, const std::string& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) return false;
  std::error_code code;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", code), end; !code && at != end;
       at.increment(code)) {
    struct stat facts {};
    const bool there = ::stat(at->path().c_str(), &facts) == 0;
    if (there && facts.st_dev == wanted.st_dev && facts.st_ino == wanted.st_ino) return true;
  }
  if (code == std::errc::permission_denied)
    throw Error("RUN_OF_ANOTHER_USER", path + " is held by pid " + std::to_string(pid) + " of another user",
                "stop the run as that user, or with sudo");
  return false;
}

}  // namespace

pid_t process_that_holds(const std::string& run_directory) {
  const auto holder = rundir::lock_holder(run_directory);
  if (!holder) return 0;
  if (holder->host != host_name())
    throw Error("RUN_ELSEWHERE", run_directory + " runs on " + holder->host,
                "stop it there, or: sinew control " + run_directory + " stop");
  return has_open(holder->pid, rundir::file_in(run_directory, rundir::kLockFile)) ? holder->pid : 0;
}

bool ask_to_stop(const std::string& run_directory, pid_t holder, bool again, const std::string& coordinators) {
  const auto info = cluster::coordinator_info_now(run_directory);
  if (!info || info->pid != holder || info->exit_code) return ::kill(holder, SIGTERM) == 0;
  if (again) return true;
  cluster::check_coordinator_address(*info, coordinators);
  try {
    cluster::request_control(*info, run_directory, "stop", kResumable, "sinew stop");
  } catch (const Error& error) {
    if (error.code != ErrorCode("COORDINATOR_NOT_READY")) throw;
    return false;  // it was elected just now, and still listens to the members
  }
  return true;
}

}  // namespace sinew::supervise
