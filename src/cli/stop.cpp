// `sinew stop RUN` ends a run of this machine with SIGTERM.
#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/process.h"
#include "cli/options.h"
#include "jobs/jobs.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "sandbox/sandbox.h"
#include "supervise/supervise.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05;

struct Wait {
  double seconds = 120;
  bool now = false;  // stop at once
};

void wait_for_end(const std::string& directory, const Wait& wait, Clock& clock) {
  const double end = clock.monotonic_seconds() + wait.seconds;
  bool asked = false;
  for (std::string place; !(place = rundir::running_place(directory)).empty();) {
    // The kernel may merge two signals into one. With --now, this loop therefore sends SIGTERM until the run has ended.
    const pid_t holder = asked && !wait.now ? 0 : supervise::process_that_holds(place);
    const std::string named = own_variable("SINEW_COORDINATORS");
    if (holder > 0) asked = supervise::ask_to_stop(place, holder, asked, named) || asked;
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
          "process that ran them was killed, stop ends the processes it left.")
      .argument("RUN", name, "a run directory, the end of a run's id, or last")
      .flag("--now", wait.now, "stop at once: a training does not finish its step, a command is killed")
      .duration("--wait", wait.seconds, "how long to wait for the end", true)
      .text("--root", "DIR", root, "where runs are found by name")
      .example("sinew stop last");
  if (!options.parse(arguments)) return kDone;
  const report::RunSummary run = report::pick_run(root, name);
  const std::string& directory = run.directory;
  Clock& clock = system_clock();
  // In the directory of a sandboxed run, the code of a model may have written the attempts, so they name no process.
  const bool trusted = !sandbox::is_untrusted(directory);
  if (run.status != "running") {
    const int left = trusted ? jobs::clean_up(directory, clock) : 0;
    std::printf("%s was not running: %s%s\n", directory.c_str(), run.status.c_str(),
                left > 0 ? "; its sinew had been killed, and its processes are ended now" : "");
    return kDone;
  }
  wait_for_end(directory, wait, clock);
  // The holders of the lock may have been killed meanwhile. Only this call then ends the processes that they left.
  if (trusted) jobs::clean_up(directory, clock);
  std::printf("%s: %s\n", directory.c_str(), status_of(directory).c_str());
  return kDone;
}

}  // namespace sinew::cli
