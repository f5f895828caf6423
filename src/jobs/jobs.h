// Runs any command: starts it, enforces limits, watches its metrics, restarts it and ends it. Leaves no process behind.
//
// A command's run has a run directory like that of a training (docs/formats/run-directory.md), and the same exit codes.
// attempt_state_machine.h and metric_watch.h decide what happens; they use neither a clock nor processes. reapers.h
// describes which process kills which others. run_command must be called in a process with a single thread, because its
// reapers are forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/signals.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::jobs {

struct CommandRun {
  spec::Job job;          // a job with a command
  std::string directory;  // the existing run directory; the run continues the attempts recorded in it
  std::string server;     // URL of the server for the command's MLflow client; may be empty
  // Returns the run's id at that server, or the reason why it has no id. It is called once, when the run directory
  // already describes the run.
  std::function<std::expected<std::string, std::string>(const std::string& resolved_yaml)> run_id;
  // Returns the metrics other than `except` that the command logged at that server for the run `id`, or the reason why
  // there are none. It is called at the end, if the run has an id.
  std::function<std::expected<report::LoggedMetrics, std::string>(const std::string& id,
                                                                  const std::set<std::string>& except)>
      logged;
  report::LogFormat format = report::LogFormat::human;
  std::function<Terminal(int descriptor)> terminal = nullptr;
  std::function<void(std::string_view)> output, errors;  // receive the texts; if empty, stdout and stderr
};

// Prepares this process for run_command. The function opens closed standard descriptors. It makes the process a
// subreaper, which receives orphaned descendants. It also makes waiting for children work even if the parent process
// ignored SIGCHLD. These changes affect the whole process. The program must therefore call this function itself, on its
// main thread, before it starts other threads. Throws Error if the process cannot become a subreaper.
void prepare_process();

// Runs the command until no attempt is left, and returns the exit code (docs/reference/exit-codes.md). SIGTERM, SIGINT
// and SIGHUP of `signals` ask it to stop. Throws Error if the run cannot begin: another process holds it, or its
// directory cannot be written.
int run_command(const CommandRun& run, SignalSource& signals, Clock& clock);

// ---- reading the state of a run from another process ----------------------------------------------------------------

struct CommandProcess {
  pid_t pid = 0, parent = 0;
  int64_t rank = -1;  // -1: the process is not a rank, but was started by one
  double cpu_seconds = 0;
  int64_t memory_bytes = 0;
  std::string command;
};
// Returns the processes of the running attempt on this machine.
std::vector<CommandProcess> processes_of(const std::string& directory);

struct AttemptSummary {
  int64_t attempt = 0;
  double began = 0, seconds = 0;
  std::string reason, why;  // `reason` is empty if the attempt runs, or if its sinew process was killed
};
std::vector<AttemptSummary> attempts_of(const std::string& directory);

// Kills the processes that are left of a run whose sinew process was killed, and records the end of its attempts.
// Returns the number of attempts that had no recorded end. Throws Error if the run is in use. Believes attempts.jsonl,
// so do not call it for a directory that somebody else may have written.
int clean_up(const std::string& directory, Clock& clock);

// ---- checkpoints of a command ---------------------------------------------------------------------------------------

// Returns the newest complete checkpoint in a directory, or an empty string. The convention of docs/guides/commands.md
// says what counts:
// - A complete checkpoint is a file or directory, not a link, that is not empty. Its name does not start with '.' or
//   '_', and does not end with .tmp, .part or .partial.
// - The newest one is the entry with the largest last number in its name. Among equal numbers, it is the entry that
//   changed last.
std::string newest_checkpoint(const std::string& directory);

// Copies the newest checkpoint of one directory into another directory under the same name. The copy is durable and
// appears atomically. Returns false if there is no checkpoint. Throws Error if it cannot be copied.
bool carry_checkpoint(const std::string& from, const std::string& to);

// Returns whether the directory has a complete checkpoint that carry_checkpoint did not put into it, or one that
// changed after that.
bool has_own_checkpoint(const std::string& directory);

}  // namespace sinew::jobs
