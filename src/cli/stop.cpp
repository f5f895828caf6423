// `sinew stop RUN` ends a run of this machine with SIGTERM.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "cli/options.h"
#include "jobs/jobs.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05;

struct Wait {
  double seconds = 120;
  bool now = false;  // stop at once
};

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

// Returns the process of this machine that took the run's lock, or 0 if that process has ended. The reapers of its
// command may then still hold the lock.
pid_t holder_of(const std::string& directory) {
  const auto holder = rundir::lock_holder(directory);
  if (!holder) return 0;
  if (holder->host != host_name())
    throw Error("RUN_ELSEWHERE", directory + " runs on " + holder->host,
                "stop it there, or: sinew control " + directory + " stop");
  return has_open(holder->pid, rundir::file_in(directory, rundir::kLockFile)) ? holder->pid : 0;
}

void wait_for_end(const std::string& directory, const Wait& wait, Clock& clock) {
  const double end = clock.monotonic_seconds() + wait.seconds;
  bool asked = false;
  while (rundir::lock_is_held(directory)) {
    // The kernel may merge two signals into one. With --now, this loop therefore sends SIGTERM until the run has ended.
    const pid_t holder = asked && !wait.now ? 0 : holder_of(directory);
    if (holder > 0) asked = ::kill(holder, SIGTERM) == 0 || asked;
    if (clock.monotonic_seconds() >= end) {
      throw Error("RUN_STILL_RUNNING", directory + " still runs",
                  asked ? "give it more time with --wait, or stop it at once with --now"
                        : "the process that holds it was not found; fuser -v " + directory + "/.lock shows it");
    }
    clock.sleep_seconds(kLookSeconds);
  }
}

std::string status_of(const std::string& directory) {
  const auto run = report::read_run(directory);
  return run ? run->status : "interrupted";
}

}  // namespace

int run_stop(const Arguments& arguments) {
  std::string name, root = "runs";
  Wait wait;
  Options options("stop", "Ends a run of this machine");
  options
      .about(
          "A training finishes its step and saves; a command gets SIGTERM and its grace. Both can be resumed. If the "
          "sinew "
          "of a run was killed, stop ends the processes it left.")
      .argument("RUN", name, "a run directory, the end of a run's id, or last")
      .flag("--now", wait.now, "stop at once: a training does not finish its step, a command is killed")
      .duration("--wait", wait.seconds, "how long to wait for the end", true)
      .text("--root", "DIR", root, "where runs are found by name")
      .example("sinew stop last");
  if (!options.parse(arguments)) return kDone;
  const report::RunSummary run = report::pick_run(root, name);
  const std::string& directory = run.directory;
  Clock& clock = system_clock();
  if (run.status != "running") {
    const int left = jobs::attempts_of(directory).empty() ? 0 : jobs::clean_up(directory, clock);
    std::printf("%s was not running: %s%s\n", directory.c_str(), run.status.c_str(),
                left > 0 ? "; its sinew had been killed, and its processes are ended now" : "");
    return kDone;
  }
  wait_for_end(directory, wait, clock);
  // The processes that held the lock may have been killed while this command waited. Only this call then ends the
  // processes that they left running.
  if (!jobs::attempts_of(directory).empty()) jobs::clean_up(directory, clock);
  std::printf("%s: %s\n", directory.c_str(), status_of(directory).c_str());
  return kDone;
}

}  // namespace sinew::cli
