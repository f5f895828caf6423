// Any command as a run: started, limited, watched, started again, ended, and never left behind.
//
// For cli/. A run of a command leaves a run directory like a training's (docs/formats/run-directory.md), with the same
// exit codes. What is decided about it is in conduct.h and metric_watch.h, without clock or process; who watches over
// its processes, and what holds whatever is killed, in guardian.h. One run a process: it makes itself a subreaper,
// takes the signals, and has a single thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::jobs {

struct CommandRun {
  spec::Job job;          // with a command
  std::string directory;  // the run's, which is there; what earlier attempts left in it is gone on with
  std::string server;     // URL that the command is told for MLflow; empty: none
  // By which that server knows the run, or why it does not; asked once, when the run's directory holds what it is.
  std::function<std::expected<std::string, std::string>(const std::string& resolved_yaml)> run_id;
  report::LogFormat format = report::LogFormat::human;
  bool terminal = false, color = false;
};

// Returns the exit code (docs/reference/exit-codes.md). Throws Error when the run can not even begin: another process
// holds it, its directory can not be written.
int run_command(const CommandRun& run, Clock& clock);

// ---- looking at a run from outside ---------------------------------------------------------------------------------

struct CommandProcess {
  pid_t pid = 0, parent = 0;
  int64_t rank = -1;  // -1: started by a rank
  double cpu_seconds = 0;
  int64_t memory_bytes = 0;
  std::string command;
};
// Of the attempt that runs, on this machine.
std::vector<CommandProcess> processes_of(const std::string& directory);

struct AttemptSummary {
  int64_t attempt = 0;
  double began = 0, seconds = 0;
  std::string ending, why;  // ending empty: it runs, or its sinew was killed
};
std::vector<AttemptSummary> attempts_of(const std::string& directory);

// Ends what is left of a run whose sinew was killed, and notes that end. How many attempts had none. Throws Error when
// the run is in use.
int clear_up(const std::string& directory, Clock& clock);

// ---- what a command saved ------------------------------------------------------------------------------------------

// The newest complete checkpoint below a directory, by the convention of docs/guides/commands.md: any file or directory
// that is not empty, whose name does not begin with '.' or '_' nor end in .tmp, .part or .partial, and which is no
// link. The greatest last number in a name wins, then the newest. "": none.
std::string newest_checkpoint(const std::string& directory);

// Copies that of one directory into another, durably and at once, under its name. False: there is none. Throws Error.
bool carry_checkpoint(const std::string& from, const std::string& to);

// Whether there is a complete checkpoint that was not carried there, or was changed since.
bool has_own_checkpoint(const std::string& directory);

}  // namespace sinew::jobs
