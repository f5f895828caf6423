#include "supervise/supervisor.h"

#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/shell_loop.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "supervise/coordinator_link.h"
#include "supervise/first_decision.h"
#include "supervise/run_processes.h"
#include "supervise/supervisor_shell.h"

namespace sinew::supervise {
namespace {

constexpr double kTurnSeconds = 0.05;  // the longest sleep of the loop

// The number of files that the supervisor always has open, and the number for each worker: the worker's process, its
// task, its board, and one more while it starts.
constexpr uint64_t kOwnFiles = 64, kFilesOfWorker = 4;

// Returns the exit code in the run's report, unless the report is still the one from before this attempt.
std::optional<int> reported_end(const rundir::Attempt& attempt) {
  const std::string text = rundir::report_text(system_disk(), attempt.run_directory);
  const auto outcome = text == attempt.report_at_begin ? std::nullopt : rundir::parse_outcome(text);
  return outcome ? std::optional(outcome->exit_code) : std::nullopt;
}

// Writes the report if the workers failed before one of them led the run, because then no worker could write it. Quotes
// the error of the worker that failed last.
void report_failure(const rundir::Attempt& attempt, const std::string& why, const std::optional<PostedError>& error,
                    double now) {
  const bool quote = error && why.find(error->what) == why.npos;
  const auto outcome = rundir::report_failed_attempt(
      system_disk(), attempt, quote ? why + "; its error: " + error->what : why,
      error && !error->hint.empty() ? error->hint : "coordinator.log in the run directory has what happened before",
      now);
  if (outcome) report::keep_run_page(system_disk(), attempt.run_directory, *outcome);
}

// A worker that joins learns from this file that the run has a ledger, even if it joins before the first step. If the
// file cannot be made, the leader says so.
void make_ledger(const std::string& directory) {
  try {
    system_disk().append(rundir::file_in(directory, rundir::kLedgerFile))->close();
  } catch (const DiskError&) {
  }
}

}  // namespace

int supervise(const SupervisorOptions& options, SignalSource& signals, Clock& clock) {
  const std::string& directory = options.launch.run_directory;
  const auto lock = rundir::RunLock::take(directory);
  if (!lock) throw Error("RUN_IN_USE", lock.error(), "sinew ps " + directory + " shows its workers");
  check_address_space();
  allow_open_files(kOwnFiles + kFilesOfWorker * static_cast<uint64_t>(options.workers));
  const rundir::RunPlace place(directory, lock->descriptor());
  cluster::RunLog log(directory, "supervisor", clock);
  rundir::remove_abandoned_writes(system_disk(), directory);
  // If the earlier attempt has ended, this attempt must not use its view. If its supervisor was killed, members of it
  // may live: then this attempt's coordinator leads them, and the view says which of them have the state.
  if (const auto before = cluster::coordinator_info_now(directory); !before || before->exit_code)
    system_disk().remove_file(rundir::file_in(directory, rundir::kViewFile));
  if (options.launch.ledger) make_ledger(directory);
  if (options.decides_first) {
    if (const auto code = decide_first(options.launch, signals)) return *code;
  }

  const rundir::Attempt attempt{directory, options.job_name, clock.wall_seconds(),
                                rundir::report_text(system_disk(), directory)};
  std::string last;  // sentence
  MachineProcessesOptions starting{options.launch, options.job_name, options.minimum, options.workers_per_machine,
                                   options.listen, options.tls};
  // Each confined worker has a share of this machine's memory. They have the run's secret, so they could ask for more
  // workers.
  if (options.launch.sandbox) starting.most = options.workers + options.elsewhere;
  const auto processes = machine_processes(starting);
  const auto coordinator = file_coordinator_link(directory);
  SupervisorShellOptions shell;
  shell.run_directory = directory;
  shell.workers = options.workers;
  shell.elsewhere = options.elsewhere;
  if (options.launch.sandbox) shell.most = options.workers;
  shell.hang_seconds = options.launch.hang_seconds;
  shell.host = host_name();
  shell.place_lost = [&place] { return place.lost(); };
  shell.say = [&](const std::string& sentence) {
    last = sentence;
    log.write(sentence);
    if (options.say) options.say(sentence);
  };
  shell.log = [&](const std::string& sentence) { log.write(sentence); };
  shell.reported_end = [&] { return reported_end(attempt); };
  SupervisorShell supervisor(shell, *processes, *coordinator, clock);
  const int code = run_shell(supervisor, signals, kTurnSeconds);
  if (code == kTrainingError && place.lost().empty()) {
    report_failure(attempt, last, supervisor.last_error(), clock.wall_seconds());
  }
  return code;
}

}  // namespace sinew::supervise
