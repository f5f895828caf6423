// What becomes of a command that runs: when it is started, asked to end, killed, started again, and how the run ends.
//
// Pure: time is an argument, and every decision carries its reason. run.cpp tells it what happened and does what it
// says; the tests live through stories by seed with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "spec/spec.h"

namespace sinew::jobs {

// How an attempt ended, which is what decides on another one.
enum class Ending {
  done,           // exit code 0
  exit,           // another exit code
  crash,          // a signal that nobody here sent
  out_of_memory,  // over its limit, or the machine's
  timeout,        // budget.attempt
  preempted,      // exit code 75: saved, and wants to be started again
  ended,          // it was ended here: stop, budget, early stopping, objective
  no_start,       // the program can not be started
};
const char* word_for(Ending ending);  // "out_of_memory"

// Why an attempt is being ended from here. The first reason stays, but a person's wish goes before all others.
enum class Cause { stop, budget, timeout, memory, pids, early_stop, objective, rank_failed };

// What is known of an attempt that is over: all of its processes are gone, but for such as can not be killed.
struct AttemptFacts {
  std::vector<ProcessEnd> ends;        // of each rank that was started, in the order in which they ended
  std::vector<int64_t> ranks;          // the rank of each
  bool guardian_lost = false;          // what watched over it was killed
  bool over_memory_limit = false;      // the kernel ended one at the limit of its group
  bool machine_out_of_memory = false;  // the machine's own killer was at work meanwhile
  std::string no_start;                // why it could not be started
  bool for_now = false;                // no_start: for want of what another may let go of
  bool left = false;                   // something of it does not die of SIGKILL
};

struct Judgement {
  Ending ending = Ending::done;
  std::string why;   // "rank 1 ended with exit code 3"
  int64_t rank = 0;  // whose end that was, where it was one's
};
// `cause`: of an attempt that was ended from here.
Judgement judge(const AttemptFacts& facts, std::optional<Cause> cause, const std::string& cause_text);

struct Policy {
  spec::RetryOptions retries;
  double grace_seconds = 30, attempt_seconds = 0, budget_seconds = 0;  // 0: no limit
};

struct Conduct {
  enum class Phase { waiting, running, ended, over };  // ended: no other attempt; over: finish was said
  Phase phase = Phase::waiting;
  int64_t attempt = 0;  // the newest's number; 0: none yet
  double next_start = 0, began = 0;
  double used_seconds = 0;            // of the budget, by attempts that are over
  std::map<Ending, int64_t> retried;  // how often each class was forgiven
  int stop_signal = 0;                // the newest wish to end; 0: none
  int stop_signals = 0;               // so many of them count towards the kill: not the end of a terminal
  std::optional<Cause> cause;         // of the end of this attempt
  std::string cause_text;
  double terminated = -1, killed = -1;  // when that was told; < 0: not yet
  double rest_since = -1;               // when its last rank ended, with something of it left
  std::optional<Judgement> last;        // how the newest attempt ended
  bool left = false;                    // and something of it can not be killed
};

struct Action {
  enum class Kind { start, terminate, kill, finish };
  Kind kind = Kind::start;
  std::string why;
  std::string status;  // finish: as report.json has it
  int code = 0;        // finish: the exit code
};

// What happened. Sentences returned are for people; empty: nothing to say.
void attempt_began(double now, Conduct& state);
std::string stop_asked(double now, Conduct& state, int signal);
std::string end_attempt(Conduct& state, Cause cause, const std::string& why);  // early stop, objective, limits
void only_rest_left(double now, Conduct& state);  // every rank has ended, and who watches over them kills the rest
// Judges it, and decides on another attempt. `jitter` in [0, 1) spreads the waits of many runs.
Judgement attempt_ended(double now, Conduct& state, const Policy& policy, const AttemptFacts& facts, double jitter);

// What is to be done now; each thing once.
std::vector<Action> next_actions(double now, Conduct& state, const Policy& policy);
// When to ask again at the latest; nullopt: when something happens.
std::optional<double> next_moment(const Conduct& state, const Policy& policy);

// Before attempt n + 1, n retries being used up: backoff * 2^(n-1), no longer than the longest, half of it by chance.
double backoff_seconds(const spec::RetryOptions& retries, int64_t retried, double jitter);

}  // namespace sinew::jobs
