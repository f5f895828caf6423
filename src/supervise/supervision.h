// Makes the decisions of a run's supervisor: which processes to start, to ask to leave or to kill, and when the run is
// over.
//
// All functions are pure functions of (time, state, options); supervisor_shell.cpp acts on their results. Each decision
// comes with the sentence that the user sees. Every state except normal training ends by itself after a bounded time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/process.h"
#include "base/signals.h"
#include "cluster/cluster.h"
#include "supervise/deadly_shard.h"

namespace sinew::supervise {

struct SupervisionOptions {
  double young_seconds = 5;            // a worker that dies sooner than this after its start is called young
  int64_t most_failures = 3;           // most deaths in a row that the workers caused, without a step between them
  int64_t most_deaths_at_a_shard = 3;  // most deaths of any kind with the same shard in flight
  // Most deaths without a step between them that were caused by SIGKILL (usually the kernel sends it, short of memory)
  // or by the supervisor because the worker hung.
  int64_t most_kills = 30;
  // Most deaths in a row by the same limit (is_limit), of workers during whose life the run made no step.
  int64_t most_limit_deaths = 2;
  double unresponsive_seconds = 15;  // a coordinator that does not answer for this time is killed and replaced
  double leave_seconds = 60;         // a worker that was asked to leave is killed after this time
  // An orderly stop (finish the step, save) may take this time. After that, the supervisor asks each worker to leave.
  double stop_seconds = 300;
  double end_seconds = 60;    // after the end of the run, workers have this time to end by themselves
  double linger_seconds = 3;  // the coordinator stays for this time, to report the end to the other members
  double kill_seconds = 5;    // time from SIGTERM to SIGKILL
  double longest_delay = 10;  // longest pause between two starts of workers that keep dying young
  double first_delay = 0.25;  // the first of these pauses; each further pause is twice as long
  // Once the run has begun, the supervisor ends it when one of these has lasted for this time: no coordinator has
  // answered; no coordinator could be started; no worker is left and none could be started. Members train without a
  // coordinator for the same time. At most retry_seconds pass between two tries.
  double no_help_seconds = 60;
  double retry_seconds = 2;
};

struct WorkerState {
  int64_t number = 0;  // 1, 2, 3 ... in the order of their starts
  pid_t pid = 0;
  double started = 0;
  int64_t first_step = 0;               // the run's newest step when this worker started
  std::optional<double> asked, killed;  // when SIGTERM and SIGKILL were sent
  std::string hangs;                    // what the worker has been doing for too long; empty if it does not hang
  std::optional<double> aborted;        // when SIGABRT was sent because the worker hangs
};

std::string name_of(const WorkerState& worker);  // "worker 2 (pid 4711)"

struct CoordinatorProcess {
  pid_t pid = 0;  // 0 if none runs
  double started = 0;
  std::optional<double> heard;          // the time of this coordinator's last answer
  std::optional<double> asked, killed;  // when SIGTERM and SIGKILL were sent
  bool done = false;              // the last coordinator ended after it had told every member that the run is over
  bool superseded = false;        // the last coordinator ended because one of another process leads the run
  int64_t unanswered_starts = 0;  // number of coordinators in a row that ended without having answered
};

// Counts failed starts in a row.
struct FailedStarts {
  int64_t count = 0;
  double since = 0;
};

// Counts deaths in a row by the same limit.
struct LimitDeaths {
  int signal = 0;
  int64_t count = 0;
};

struct RunOver {
  int code = 0;
  double since = 0;
  bool orderly = true;  // true: the workers know of it and end by themselves; false: the supervisor ends them
  std::string why;      // empty if the worker has printed the reason
};

struct Supervision {
  std::string run = "RUN";  // the run directory as a word of a command line
  int64_t wanted = 1;
  std::vector<WorkerState> workers;  // the workers that live; oldest first
  CoordinatorProcess coordinator;
  bool begun = false;           // true: a coordinator has answered at least once
  double answered = 0;          // the time of the last answer of any coordinator
  double next_coordinator = 0;  // no coordinator is started before this time
  // Members on any machine that compute, by the last answer, and joined with the run's secret.
  int64_t computing = 0;
  std::vector<pid_t> computing_here;  // processes of this machine that compute
  FailedStarts no_worker, no_coordinator;
  int64_t step = 0;  // the newest step that a member with the run's secret has reported
  // These are counted since that step: deaths that the workers caused, deaths with exit code 1, and deaths by SIGKILL
  // or for hanging.
  int64_t failures = 0, errors = 0, kills = 0;
  LimitDeaths limit_deaths;
  // True if the last worker that ended had left. Then it had saved the state, or others have it. The next step resets
  // this.
  bool left_with_checkpoint = false;
  std::vector<Death> deaths;  // deaths with shards that no committed step includes yet
  // the latest deaths in a row in which a young worker died, and not by a signal from outside
  int64_t early_exits = 0;
  double next_start = 0;             // no worker is started before this time
  std::optional<double> hold;        // no worker is started until the coordinator has answered after this time
  std::optional<double> stop_since;  // when the user asked the run to stop
  StopRequests stop;                 // an immediate stop request ends all processes at once
  bool stop_delivered = false;       // true: the coordinator has received the request to stop
  std::optional<RunOver> over;
};

// ---- rules that restart_loop.h uses too -----------------------------------------------------------------------------

// Returns whether this is a signal that a program causes itself. Any other signal counts as one that another process
// sent.
bool is_crash(int signal);
// Returns whether the kernel sends this signal when a process exceeds one of its own limits: SIGXCPU or SIGXFSZ. The
// workers started later have the same limit.
bool is_limit(int signal);
std::string limit_behind(int signal);  // "the limit of CPU time (ulimit -t)"
// Counts deaths of young workers in a row, and delays the next start if there are several. `quick` tells whether the
// newest death is such a death.
void delay_start(double now, int64_t& early_exits, double& next_start, bool quick, const SupervisionOptions& options);
// Counts a failed start, and sets `next`, the time of the next try. Returns true if starts have failed for too long.
bool failed_for_too_long(double now, FailedStarts& starts, double& next, const SupervisionOptions& options);

// ---- events: each returns a sentence for the user, or an empty string -----------------------------------------------

void worker_started(double now, Supervision& state, int64_t number, pid_t pid);
// `doing` has the shards that the worker had in flight according to its activity board. `cause` is the error that it
// posted there, in one line; empty if it posted none.
std::string worker_ended(double now, Supervision& state, pid_t pid, const ProcessEnd& end,
                         const std::vector<Work>& doing = {}, const SupervisionOptions& options = {},
                         const std::string& cause = "");
// The worker holds up the run and must be ended; `why` says what the worker is doing.
void worker_hangs(Supervision& state, pid_t pid, const std::string& why);
void coordinator_started(double now, Supervision& state, pid_t pid);
// A coordinator that ends with kRejoin was replaced by one of another process: the run goes on without this supervisor.
std::string coordinator_ended(double now, Supervision& state, const ProcessEnd& end, std::optional<int64_t> finished,
                              const SupervisionOptions& options = {});
// The coordinator answered. Its answer contains the wanted number of workers, the newest step, and the run's exit code
// once the run has ended. It also says how many members compute, and which processes of this machine compute (without
// suspended ones) or leave.
std::string coordinator_answered(double now, Supervision& state, int64_t wanted, int64_t step,
                                 std::optional<int64_t> finished, int64_t computing = 0,
                                 const cluster::LocalProcesses& here = {});
// A process could not be started for the reason `why`. The supervisor tries again.
std::string worker_not_started(double now, Supervision& state, const std::string& why,
                               const SupervisionOptions& options = {});
std::string coordinator_not_started(double now, Supervision& state, const std::string& why,
                                    const SupervisionOptions& options = {});
void stop_requested(double now, Supervision& state, int signal);

// ---- actions --------------------------------------------------------------------------------------------------------

struct Action {
  enum class Kind { start_coordinator, start_worker, send, request_stop, finish };
  Kind kind = Kind::finish;
  pid_t pid = 0;    // send: the receiver
  int signal = 0;   // set if kind is send
  int code = 0;     // finish: the exit code
  std::string why;  // for the user; may be empty
  bool operator==(const Action&) const = default;
};

// Returns the actions to take now. The state remembers which actions were returned, so that each is returned once.
std::vector<Action> next_actions(double now, Supervision& state, const SupervisionOptions& options = {});

}  // namespace sinew::supervise
