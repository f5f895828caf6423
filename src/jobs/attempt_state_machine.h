// The state machine of a command's attempts. It decides when an attempt starts, when sinew asks the attempt to end or
// kills it, whether another attempt follows, and how the run ends.
//
// It is pure: time is an argument, and every decision comes with its reason. run_command.cpp reports events to it and
// executes its actions. The tests run it through random sequences of events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/signals.h"
#include "spec/spec.h"

namespace sinew::jobs {

// How an attempt ended. It decides whether another attempt follows.
enum class ExitReason {
  done,           // the command ended with exit code 0
  exit,           // the command ended with another exit code
  crash,          // a signal that sinew did not send ended the command
  out_of_memory,  // the command exceeded its memory limit or the machine's memory
  timeout,        // the command exceeded the time limit budget.attempt
  preempted,      // the command ended with exit code 75: it saved its state and wants a restart
  ended,          // sinew ended the command because of a stop request, the budget, early stopping or the objective
  no_start,       // the command cannot be started
};
const char* to_string(ExitReason reason);  // "out_of_memory"

// Why sinew ends an attempt. The first reason stays, except that a stop request replaces any other reason.
enum class StopReason { stop, budget, timeout, memory, pids, early_stop, objective, rank_failed };

// How an attempt ended. Only processes that survive SIGKILL are left of it.
struct AttemptFacts {
  std::vector<ProcessEnd> ends;        // the ends of the ranks that were started, in the order in which they ended
  std::vector<int64_t> ranks;          // ranks[i] is the rank of ends[i]
  bool reaper_lost = false;            // true: the inner reaper was killed
  bool over_memory_limit = false;      // true: the kernel killed a process at the limit of its control group
  bool machine_out_of_memory = false;  // true: the kernel's out-of-memory killer ran during the attempt
  std::string no_start;                // why the attempt could not be started; empty if it was started
  bool transient = false;              // true: a resource that may become free again was missing for the start
  bool unkillable = false;             // true: a process of the attempt survives SIGKILL
};

struct AttemptResult {
  ExitReason reason = ExitReason::done;
  std::string why;   // "rank 1 ended with exit code 3"
  int64_t rank = 0;  // the rank that decided the result
};
// Determines how an attempt ended. `stop` is the reason why sinew ended it, or nullopt if it ended by itself.
// `stop_text` is the sentence that goes with `stop`.
AttemptResult classify(const AttemptFacts& facts, std::optional<StopReason> stop, const std::string& stop_text);

struct Policy {
  spec::RetryOptions retries;
  double grace_seconds = 30, attempt_seconds = 0, budget_seconds = 0;  // attempt, budget: 0 means no limit
  std::string budget_option = "budget.time";                           // the option that sets budget_seconds
};

struct AttemptStateMachine {
  // waiting: the next attempt will start. ended: no other attempt follows. over: the action finish was returned.
  enum class Phase { waiting, running, ended, over };
  Phase phase = Phase::waiting;
  int64_t attempt = 0;  // number of the newest attempt; 0: no attempt has begun
  double next_start = 0, began = 0;
  double used_seconds = 0;                // budget that finished attempts have used
  std::map<ExitReason, int64_t> retried;  // how many retries each reason has used
  StopRequests stop;                      // an immediate stop request kills at once
  std::optional<StopReason> stop_reason;  // why sinew is ending this attempt
  std::string stop_text;
  double terminated = -1, killed = -1;  // when next_actions returned these actions; below 0: it has not
  // The time since which all ranks have ended and other processes remain. It is below 0 while ranks still run, or if no
  // process remains.
  double leftovers_since = -1;
  std::optional<AttemptResult> last;  // the result of the newest attempt that has ended
  bool unkillable = false;            // true: a process of that attempt survives SIGKILL
};

struct Action {
  enum class Kind { start, terminate, kill, finish };
  Kind kind = Kind::start;
  std::string why;
  std::string status;  // finish: the status in report.json
  int code = 0;        // finish: the exit code of the run
};

// ---- events: the returned sentences are for users and may be empty --------------------------------------------------

void attempt_began(double now, AttemptStateMachine& state);
std::string request_stop(double now, AttemptStateMachine& state, int signal);
// Ends the attempt because of early stopping, a met objective or an exceeded limit.
std::string stop_attempt(AttemptStateMachine& state, StopReason reason, const std::string& why);
// Every rank has ended, and the reapers are killing the processes that remain.
void only_leftovers_remain(double now, AttemptStateMachine& state);
// Classifies the attempt and decides whether another one follows. `jitter` is in [0, 1). It makes the waits of many
// runs differ.
AttemptResult attempt_ended(double now, AttemptStateMachine& state, const Policy& policy, const AttemptFacts& facts,
                            double jitter);

// ---- decisions -----------------------------------------------------------------------------------------------------

// Returns the actions that are due now. Each action is returned once.
std::vector<Action> next_actions(double now, AttemptStateMachine& state, const Policy& policy);
// Returns the latest time at which next_actions must be called again. Returns nullopt if no call is needed before the
// next event.
std::optional<double> next_deadline(const AttemptStateMachine& state, const Policy& policy);

// Returns the wait before a retry: backoff * 2^(retried - 1), but at most retries.longest. `jitter` scales it by a
// factor from 0.5 to 1.
double backoff_seconds(const spec::RetryOptions& retries, int64_t retried, double jitter);

}  // namespace sinew::jobs
