// Runs any command: starts it, enforces limits, watches its metrics, restarts it, ends it, and leaves no process
// behind.
//
// A run of a command leaves a run directory like that of a training (docs/formats/run-directory.md) and has the same
// exit codes. attempt_state_machine.h and metric_watch.h decide what happens, without a clock and without processes;
// reapers.h describes which process ends which. run_command needs a process with a single thread, because its reapers
// are forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
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
  std::string directory;  // the existing run directory; the run continues earlier attempts in it
  std::string server;     // URL of the server for the command's MLflow client; empty: none
  // Returns the run's id at that server, or why it has none. Called once, after the run directory describes the run.
  std::function<std::expected<std::string, std::string>(const std::string& resolved_yaml)> run_id;
  report::LogFormat format = report::LogFormat::human;
  bool terminal = false, color = false;
  std::function<void(std::string_view)> output, errors;  // receive the texts; empty: stdout and stderr
};

// Prepares this process for run_command: opens the standard descriptors that are closed, receives orphaned descendants
// (as a subreaper) and waits for children even if the parent process ignored SIGCHLD. It changes the whole process, so
// a program calls it itself, on its main thread before it starts other threads. Throws Error.
void prepare_process();

// Runs the command until no attempt is left, and returns the exit code (docs/reference/exit-codes.md). SIGTERM, SIGINT
// and SIGHUP of `signals` ask it to stop. Throws Error if the run cannot begin: another process holds it, or its
// directory cannot be written.
int run_command(const CommandRun& run, SignalSource& signals, Clock& clock);

// ---- looking at a run from another process --------------------------------------------------------------------------

struct CommandProcess {
  pid_t pid = 0, parent = 0;
  int64_t rank = -1;  // -1: a process that a rank started
  double cpu_seconds = 0;
  int64_t memory_bytes = 0;
  std::string command;
};
// The processes of the running attempt on this machine.
std::vector<CommandProcess> processes_of(const std::string& directory);

struct AttemptSummary {
  int64_t attempt = 0;
  double began = 0, seconds = 0;
  std::string reason, why;  // reason empty: it runs, or its sinew was killed
};
std::vector<AttemptSummary> attempts_of(const std::string& directory);

// Kills what is left of a run whose sinew was killed, and records the end of its attempts. Returns how many attempts
// had no end. Throws Error if the run is in use.
int clean_up(const std::string& directory, Clock& clock);

// ---- checkpoints of a command ---------------------------------------------------------------------------------------

// The newest complete checkpoint in a directory, by the convention of docs/guides/commands.md: a file or directory that
// is not empty and no link, and whose name does not start with '.' or '_' or end with .tmp, .part or .partial. The
// entry with the largest last number in its name wins, then the newest. "": none.
std::string newest_checkpoint(const std::string& directory);

// Copies the newest checkpoint of one directory into another under the same name, durably and atomically. Returns false
// if there is none. Throws Error.
bool carry_checkpoint(const std::string& from, const std::string& to);

// Whether the directory has a complete checkpoint that carry_checkpoint did not put there, or that changed since.
bool has_own_checkpoint(const std::string& directory);

}  // namespace sinew::jobs
