// What the supervisor of a run decides: which processes to start, to ask to leave, to kill, and when the run is over.
//
// Pure: functions of (now, what is known, options); nothing here starts, asks or waits for anything (supervisor.cpp
// does). Whatever is decided says why, in the words a person is shown. Every state but "training goes on" ends by
// itself after a bounded time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/process.h"
#include "cli/group_line.h"
#include "cli/poison.h"

namespace sinew::cli {

struct SupervisionOptions {
  double young_seconds = 5;   // a worker that dies sooner after its start died young
  int64_t most_failures = 3;  // in a row, by the workers' own doing, without a step in between
  int64_t most_poisoned = 3;  // deaths, however they came, with the same shard in flight
  int64_t most_kills = 30;    // the same by SIGKILL (the kernel short of memory, if nobody else did it) or for hanging
  double deaf_seconds = 15;   // a coordinator that answers nothing for so long is replaced
  double leave_seconds = 60;  // for a worker that was asked to leave; then it is killed
  double stop_seconds = 300;  // for an orderly stop: the step, a checkpoint; then the workers are asked one by one
  double end_seconds = 60;    // for workers to end by themselves once the run is over
  double linger_seconds = 3;  // for the coordinator to tell the others that it is over
  double kill_seconds = 5;    // between SIGTERM and SIGKILL
  double longest_delay = 10;  // between two starts, when workers die young again and again
  double first_delay = 0.25;
  // Once the run has begun: how long no coordinator has to answer, or none of its processes can be started, before the
  // run is given up. As long as members do without a coordinator. Between two tries at most retry_seconds pass.
  double no_help_seconds = 60;
  double retry_seconds = 2;
};

struct WorkerState {
  int64_t number = 0;  // 1, 2, 3 ... in the order they were started
  pid_t pid = 0;
  double started = 0;
  std::optional<double> asked, killed;  // when SIGTERM and SIGKILL were sent
  std::string hangs;                    // empty: it does not; else what it was at for so long
  std::optional<double> aborted;        // when SIGABRT was sent, because it hangs
};

std::string name_of(const WorkerState& worker);  // "worker 2 (pid 4711)"

struct CoordinatorProcess {
  pid_t pid = 0;  // 0: none runs
  double started = 0;
  std::optional<double> heard;          // its last answer
  std::optional<double> asked, killed;  // when SIGTERM and SIGKILL were sent
  bool done = false;                    // the last one ended because all were told that the run is over
  int64_t mute_lives = 0;               // in a row that ended without one answer
};

// Starts in a row that came to nothing.
struct FailedStarts {
  int64_t count = 0;
  double since = 0;
};

struct RunOver {
  int code = 0;
  double since = 0;
  bool orderly = true;  // the workers know and end by themselves; else they are stopped
  std::string why;      // empty: nothing to add to what the worker printed
};

struct Supervision {
  int64_t wanted = 1;
  std::vector<WorkerState> workers;  // that live; oldest first
  CoordinatorProcess coordinator;
  bool begun = false;                 // a coordinator answered once
  double answered = 0;                // when one last did
  double next_coordinator = 0;        // none is started before
  int64_t computing = 0;              // members that compute, wherever they are, as of the last answer
  std::vector<pid_t> computing_here;  // processes of this machine that do
  FailedStarts no_worker, no_coordinator;
  int64_t step = 0;  // newest a member told
  // Since that step: deaths by the workers' own doing, those of them with exit code 1, and deaths by SIGKILL
  // or for hanging.
  int64_t failures = 0, errors = 0, kills = 0;
  std::vector<Death> deaths;         // whose shards no step has got past
  int64_t quick_deaths = 0;          // young ones in a row, not by somebody's signal
  double next_start = 0;             // no worker is started before
  std::optional<double> hold;        // none either until the coordinator was heard after this instant
  std::optional<double> stop_since;  // a person asked for the end
  int stop_signal = 0;
  int stop_signals = 0;    // two end everything at once; the end of a terminal is none of them
  bool stop_told = false;  // the coordinator took the request
  std::optional<RunOver> over;
};

// ---- what happened; each returns a sentence for people, or nothing
// ---------------------------------------------------

void worker_started(double now, Supervision& state, int64_t number, pid_t pid);
// `doing`: the shards it had in flight, where its board is here.
std::string worker_ended(double now, Supervision& state, pid_t pid, const ProcessEnd& end,
                         const std::vector<Work>& doing = {}, const SupervisionOptions& options = {});
// It holds up the run and is to be ended; `why` says so.
void worker_hangs(Supervision& state, pid_t pid, const std::string& why);
void coordinator_started(double now, Supervision& state, pid_t pid);
std::string coordinator_ended(double now, Supervision& state, const ProcessEnd& end, std::optional<int64_t> finished,
                              const SupervisionOptions& options = {});
// The coordinator answered: how many are wanted, the newest step, the run's exit code once it has ended, how many
// members compute, and which processes of this machine do (without stopped ones) or leave.
std::string coordinator_told(double now, Supervision& state, int64_t wanted, int64_t step,
                             std::optional<int64_t> finished, int64_t computing = 0, const ProcessesHere& here = {});
// A process could not be started, for that reason; it is tried again.
std::string worker_not_started(double now, Supervision& state, const std::string& why,
                               const SupervisionOptions& options = {});
std::string coordinator_not_started(double now, Supervision& state, const std::string& why,
                                    const SupervisionOptions& options = {});
void stop_asked(double now, Supervision& state, int signal);

// ---- what to do
// ------------------------------------------------------------------------------------------------------

struct Action {
  enum class Kind { start_coordinator, start_worker, send, tell_stop, finish };
  Kind kind = Kind::finish;
  pid_t pid = 0;    // send: to whom
  int signal = 0;   // send
  int code = 0;     // finish: the exit code
  std::string why;  // for people; empty: it needs no word
  bool operator==(const Action&) const = default;
};

// What is to be done now. The state notes what it asked for, so that it is asked once.
std::vector<Action> next_actions(double now, Supervision& state, const SupervisionOptions& options = {});

}  // namespace sinew::cli
