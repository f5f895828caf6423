#include "supervise/supervision.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/signals.h"

namespace sinew::supervise {
namespace {

void end_run(double now, Supervision& state, int code, bool orderly, std::string why) {
  if (!state.over) state.over = RunOver{code, now, orderly, std::move(why)};
}

std::string at_step(const Supervision& state) {
  return "step " + std::to_string(state.step);
}

// The command with which the user resumes the run.
std::string resume_command(const Supervision& state) {
  return "sinew resume " + state.run + " --workers " + std::to_string(state.wanted);
}

// Returns at which step a worker died. Its own shards say it exactly; the coordinator may not have reported that step.
std::string step_of_death(const Supervision& state, const std::vector<Work>& doing) {
  int64_t step = state.step;
  for (const Work& work : doing) step = std::max(step, work.step);
  return "step " + std::to_string(step);
}

// Counts a death that the worker itself caused. Every new step of the run resets the count.
void count_failure(double now, Supervision& state, const ProcessEnd& end, bool young,
                   const SupervisionOptions& options) {
  if (++state.failures < options.most_failures) return;
  const std::string last =
      std::to_string(state.failures) + " workers in a row died at " + at_step(state) + ", the last " + to_string(end);
  end_run(now, state, kTrainingError, false,
          young ? last + ", within " + std::to_string(static_cast<int>(options.young_seconds)) +
                      " s of its start: the run is stopped"
                : last + ": that step ends every worker that computes it; the run is stopped");
}

void count_kill(double now, Supervision& state, const SupervisionOptions& options) {
  if (++state.kills < options.most_kills) return;
  end_run(
      now, state, kTrainingError, false,
      std::to_string(state.kills) + " workers were killed by SIGKILL or hung at " + at_step(state) +
          " and no step was made: the machine may be out of memory, or its disk may not answer; the run is stopped");
}

// Counts a death by a limit, which ends every worker in turn. If the run made steps while the worker lived, the worker
// was useful, and the count starts again.
void count_limit(double now, Supervision& state, const WorkerState& worker, int signal,
                 const SupervisionOptions& options) {
  LimitDeaths& deaths = state.limit_deaths;
  if (deaths.signal != signal || state.step > worker.first_step) deaths = {signal, 0};
  if (state.step > worker.first_step || ++deaths.count < options.most_limit_deaths) return;
  end_run(now, state, kTrainingError, false,
          std::to_string(deaths.count) + " workers in a row were killed by " + signal_name(signal) + " at " +
              at_step(state) + " and no step was made: " + limit_behind(signal) +
              " ends every worker; the run is stopped\n  try: raise the limit. Then: " + resume_command(state));
}

// Counts a worker that ended with an error message. A single error may be a problem of the worker's machine. A second
// error at the same step, or an error of the only worker, is a problem of the job and ends the run. If the error
// happened in a shard, the run ends only after most_failures errors, unless no worker is left.
std::string count_error(double now, Supervision& state, const std::string& who, bool in_shard,
                        const SupervisionOptions& options, const std::string& cause) {
  ++state.errors;
  const std::string what = who + " ended with an error" + (cause.empty() ? "" : ": " + cause);
  if (state.errors >= (in_shard ? options.most_failures : 2) || state.workers.empty()) {
    end_run(now, state, kTrainingError, false, "");
    return what;
  }
  return what + "; the others go on, and the run ends if another one fails at " + at_step(state);
}

// Handles a worker that left. During a stop, it may have handed its work to workers on this or another machine. The run
// then ends as those workers end.
void count_leaving(double now, Supervision& state) {
  if (!state.stop_since) {
    state.hold = now;  // the worker left, or the run was stopped: only the coordinator knows which
  } else if (state.workers.empty() && state.computing <= std::ssize(state.computing_here)) {
    end_run(now, state, kResumable, true, "");
  }
}

std::string ended_by_code(double now, Supervision& state, const WorkerState& worker, int code, bool young,
                          bool in_shard, const SupervisionOptions& options, const std::string& cause) {
  const std::string who = name_of(worker);
  switch (code) {
    case kDone:
    case kBudget: end_run(now, state, code, true, ""); return "";
    case kUsage:
      end_run(now, state, code, false, "");
      return who + " could not begin" + (cause.empty() ? "" : ": " + cause);
    case kResumable: count_leaving(now, state); return state.stop_since ? "" : who + " left";
    case kRejoin: return who + " was fenced and joins again";
    case kTrainingError: return count_error(now, state, who, in_shard, options, cause);
    default: count_failure(now, state, {code, 0}, young, options); return who + " " + to_string(ProcessEnd{code, 0});
  }
}

// Returns how a worker died if its work may be the cause, else an empty string.
std::string way_of_dying(const WorkerState& worker, const ProcessEnd& end) {
  if (!worker.hangs.empty()) return "no end";
  if (end.signal == SIGKILL) return "SIGKILL: perhaps out of memory";
  if (end.signal != 0) return is_crash(end.signal) ? signal_name(end.signal) : "";
  switch (end.code) {
    case kDone:
    case kBudget:
    case kUsage:
    case kResumable:
    case kRejoin: return "";
    case kTrainingError: return "an error";
    default: return "exit code " + std::to_string(end.code);
  }
}

// Records the shards of a dead worker. Returns true if this ends the run because one of these shards was in flight at
// several earlier deaths.
bool died_of_a_shard(double now, Supervision& state, const WorkerState& worker, const ProcessEnd& end,
                     const std::vector<Work>& doing, const SupervisionOptions& options) {
  const std::string how = way_of_dying(worker, end);
  if (how.empty() || doing.empty()) return false;
  state.deaths.push_back({how, doing});
  const auto why = deadly_shard_in(state.deaths, options.most_deaths_at_a_shard, resume_command(state));
  if (why) end_run(now, state, kTrainingError, false, *why);
  return why.has_value();
}

double pause_before_retry(int64_t failures, const SupervisionOptions& options) {
  const double doublings = static_cast<double>(std::clamp<int64_t>(failures - 1, 0, 20));
  return std::min(options.retry_seconds, options.first_delay * std::exp2(doublings));
}

}  // namespace

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP || signal == SIGSYS;
}

bool is_limit(int signal) {
  return signal == SIGXCPU || signal == SIGXFSZ;
}

std::string limit_behind(int signal) {
  return signal == SIGXCPU ? "the limit of CPU time (ulimit -t)" : "the limit of file sizes (ulimit -f)";
}

void delay_start(double now, int64_t& early_exits, double& next_start, bool quick, const SupervisionOptions& options) {
  early_exits = quick ? early_exits + 1 : 0;
  if (early_exits < 2) return;
  const double doublings = static_cast<double>(std::min<int64_t>(early_exits - 2, 20));
  next_start = now + std::min(options.longest_delay, options.first_delay * std::exp2(doublings));
}

bool failed_for_too_long(double now, FailedStarts& starts, double& next, const SupervisionOptions& options) {
  if (starts.count == 0) starts.since = now;
  next = std::max(next, now + pause_before_retry(++starts.count, options));
  return now - starts.since >= options.no_help_seconds;
}

std::string name_of(const WorkerState& worker) {
  return "worker " + std::to_string(worker.number) + " (pid " + std::to_string(worker.pid) + ")";
}

void worker_started(double now, Supervision& state, int64_t number, pid_t pid) {
  state.no_worker = {};
  state.workers.push_back({number, pid, now, state.step, {}, {}, {}, {}});
}

std::string worker_ended(double now, Supervision& state, pid_t pid, const ProcessEnd& end,
                         const std::vector<Work>& doing, const SupervisionOptions& options, const std::string& cause) {
  const auto found =
      std::find_if(state.workers.begin(), state.workers.end(), [&](const auto& worker) { return worker.pid == pid; });
  if (found == state.workers.end()) return "";
  const WorkerState worker = *found;
  state.workers.erase(found);
  if (state.over) return "";
  const bool left = end == ProcessEnd{kResumable, 0};
  if (left || end.signal != 0) state.left_with_checkpoint = left;
  const bool poison = !worker.asked && died_of_a_shard(now, state, worker, end, doing, options);
  if (worker.aborted) {
    count_kill(now, state, options);
    return name_of(worker) + " was ended because it hung";
  }
  if (worker.asked || worker.killed) {
    if (state.stop_since && end == ProcessEnd{kResumable, 0}) end_run(now, state, kResumable, true, "");
    if (end == ProcessEnd{kDone, 0}) end_run(now, state, kDone, true, "");  // it ended the run before it could leave
    return name_of(worker) + " left";
  }
  const bool young = now - worker.started < options.young_seconds;
  const bool by_others = end.signal != 0 && !is_crash(end.signal);
  delay_start(now, state.early_exits, state.next_start, young && !by_others, options);
  if (poison)
    return name_of(worker) + (end.signal != 0 ? " was " : " ") + to_string(end) + " at " + step_of_death(state, doing);
  if (end.signal == 0) return ended_by_code(now, state, worker, end.code, young, !doing.empty(), options, cause);
  if (end.signal == SIGKILL) count_kill(now, state, options);
  if (is_limit(end.signal)) count_limit(now, state, worker, end.signal, options);
  if (!by_others) count_failure(now, state, end, young, options);
  return name_of(worker) + " was " + to_string(end) + " at " + step_of_death(state, doing);
}

void worker_hangs(Supervision& state, pid_t pid, const std::string& why) {
  for (WorkerState& worker : state.workers) {
    if (worker.pid == pid && worker.hangs.empty()) worker.hangs = why;
  }
}

void coordinator_started(double now, Supervision& state, pid_t pid) {
  CoordinatorProcess begun;
  begun.pid = pid;
  begun.started = now;
  begun.unanswered_starts = state.coordinator.unanswered_starts;
  state.coordinator = begun;
  state.no_coordinator = {};
}

// Counts a failed start of a worker. The run continues while it has other workers on this machine.
std::string worker_not_started(double now, Supervision& state, const std::string& why,
                               const SupervisionOptions& options) {
  const bool first = state.no_worker.count == 0;
  if (failed_for_too_long(now, state.no_worker, state.next_start, options) && state.workers.empty())
    end_run(now, state, kTrainingError, false, "no worker can be started: " + why);
  return first && !state.over ? why + "; sinew tries again" : "";
}

std::string coordinator_not_started(double now, Supervision& state, const std::string& why,
                                    const SupervisionOptions& options) {
  const bool first = state.no_coordinator.count == 0;
  if (failed_for_too_long(now, state.no_coordinator, state.next_coordinator, options))
    end_run(now, state, kTrainingError, false, "no coordinator can be started: " + why);
  return first && !state.over ? why + "; sinew tries again" : "";
}

std::string coordinator_ended(double now, Supervision& state, const ProcessEnd& end, std::optional<int64_t> finished,
                              const SupervisionOptions& options) {
  CoordinatorProcess& coordinator = state.coordinator;
  const pid_t pid = coordinator.pid;
  coordinator.pid = 0;
  coordinator.unanswered_starts = coordinator.heard ? 0 : coordinator.unanswered_starts + 1;
  coordinator.done = finished.has_value();
  if (finished) end_run(now, state, static_cast<int>(*finished), true, "");
  if (end == ProcessEnd{kRejoin, 0}) {
    coordinator.superseded = true;
    end_run(
        now, state, kResumable, false,
        "another coordinator leads the run now: this supervisor steps down and ends its workers; coordinator.log in "
        "the run directory says why\n  try: sinew join, to let this machine's workers help the run again");
  }
  if (state.over) return "";
  // Once the run has begun, its members can train without a coordinator for a while. A temporary cause, such as a full
  // disk, therefore does not end the run.
  const bool in_vain = state.begun ? now - state.answered >= options.no_help_seconds
                                   : coordinator.unanswered_starts >= options.most_failures;
  if (coordinator.unanswered_starts > 0 && in_vain) {
    end_run(now, state, kTrainingError, false,
            "the coordinator does not start; coordinator.log in the run directory may say why");
  }
  if (coordinator.unanswered_starts > 0 && state.begun)
    state.next_coordinator = now + pause_before_retry(coordinator.unanswered_starts, options);
  return "the coordinator (pid " + std::to_string(pid) + ") " + (end.signal != 0 ? "was " : "") + to_string(end);
}

std::string coordinator_answered(double now, Supervision& state, int64_t wanted, int64_t step,
                                 std::optional<int64_t> finished, int64_t computing,
                                 const cluster::LocalProcesses& here) {
  state.begun = true;
  state.answered = now;
  state.next_coordinator = 0;
  state.computing = computing;
  state.computing_here = here.computing;
  // Another worker replaces a worker that the user asked to leave. The supervisor does not ask that worker again.
  for (WorkerState& worker : state.workers) {
    if (std::ranges::find(here.leaving, worker.pid) != here.leaving.end() && !worker.asked) worker.asked = now;
  }
  state.coordinator.heard = now;
  state.coordinator.unanswered_starts = 0;
  if (state.hold && now > *state.hold) state.hold.reset();
  if (step > state.step) {
    state.step = step;
    state.failures = state.errors = state.kills = 0;
    state.left_with_checkpoint = false;
    forget_before(step, state.deaths);
  }
  if (finished) end_run(now, state, static_cast<int>(*finished), true, "");
  if (wanted == state.wanted || state.over) return "";
  const std::string why =
      std::to_string(wanted) + " workers wanted instead of " + std::to_string(state.wanted) + " at " + at_step(state);
  state.wanted = wanted;
  return why;
}

void stop_requested(double now, Supervision& state, int signal) {
  if (state.stop.add(signal)) state.stop_since = now;
}

namespace {

// Asks the process to end: sends SIGTERM once, then SIGKILL after `seconds`, and repeats SIGKILL while the process
// lives.
template <typename State>
void ask_to_leave(double now, State& child, double seconds, const SupervisionOptions& options,
                  std::vector<Action>& actions, const std::string& why = "") {
  if (!child.asked) {
    child.asked = now;
    actions.push_back({Action::Kind::send, child.pid, SIGTERM, 0, why});
  } else if (now - *child.asked >= seconds && (!child.killed || now - *child.killed >= options.kill_seconds)) {
    child.killed = now;
    actions.push_back({Action::Kind::send, child.pid, SIGKILL, 0, ""});
  }
}

// Ends a hanging worker. Sends SIGABRT first, because the system may be set up to keep a core file, and SIGKILL later.
void end_hanging(double now, WorkerState& worker, const SupervisionOptions& options, std::vector<Action>& actions) {
  const std::optional<double> sent = worker.killed ? worker.killed : worker.aborted;
  if (sent && now - *sent < options.kill_seconds) return;
  (sent ? worker.killed : worker.aborted) = now;
  actions.push_back({Action::Kind::send, worker.pid, sent ? SIGKILL : SIGABRT, 0,
                     sent ? "" : name_of(worker) + " is stopped: " + worker.hangs});
}

std::vector<Action> kill_all(Supervision& state) {
  std::vector<Action> actions;
  for (const WorkerState& worker : state.workers) actions.push_back({Action::Kind::send, worker.pid, SIGKILL, 0, ""});
  if (state.coordinator.pid > 0) actions.push_back({Action::Kind::send, state.coordinator.pid, SIGKILL, 0, ""});
  actions.push_back({Action::Kind::finish, 0, 0, 128 + state.stop.signal(), "stopped without waiting"});
  return actions;
}

void keep_coordinator(double now, Supervision& state, const SupervisionOptions& options, std::vector<Action>& actions) {
  CoordinatorProcess& coordinator = state.coordinator;
  if (coordinator.pid == 0) {
    if (now >= state.next_coordinator) actions.push_back({Action::Kind::start_coordinator, 0, 0, 0, ""});
  } else if (now - coordinator.heard.value_or(coordinator.started) >= options.unresponsive_seconds &&
             (!coordinator.killed || now - *coordinator.killed >= options.kill_seconds)) {
    coordinator.killed = now;
    actions.push_back(
        {Action::Kind::send, coordinator.pid, SIGKILL, 0, "the coordinator does not answer: sinew replaces it"});
  }
}

std::vector<Action> wind_up(double now, Supervision& state, const SupervisionOptions& options) {
  std::vector<Action> actions;
  const RunOver& over = *state.over;
  // The coordinator has reported the end to every member and has ended. A worker that it could not reach can no longer
  // learn of the end.
  const bool unheard = state.coordinator.done && state.coordinator.pid == 0 &&
                       now - over.since >= std::min(options.linger_seconds, options.end_seconds);
  for (WorkerState& worker : state.workers) {
    if (!over.orderly || unheard || now - over.since >= options.end_seconds)
      ask_to_leave(now, worker, options.kill_seconds, options, actions);
  }
  if (!state.workers.empty()) {
    if (over.orderly && !state.coordinator.done)
      keep_coordinator(now, state, options, actions);  // it still has to report the end to the workers
    return actions;
  }
  if (state.coordinator.pid == 0) {
    actions.push_back({Action::Kind::finish, 0, 0, over.code, over.why});
  } else if (!over.orderly || now - over.since >= options.linger_seconds) {
    ask_to_leave(now, state.coordinator, options.kill_seconds, options, actions);
  }
  return actions;
}

void stop_orderly(double now, Supervision& state, const SupervisionOptions& options, std::vector<Action>& actions) {
  // Members on other machines can save the checkpoint, too; `computing` includes them.
  const bool too_late = now - *state.stop_since >= options.stop_seconds;
  if (!state.begun || (state.workers.empty() && (state.computing == 0 || too_late))) {
    if (state.left_with_checkpoint) return end_run(now, state, kResumable, true, "");
    end_run(now, state, 128 + state.stop.signal(), false, "there was no worker that could save a checkpoint");
  } else if (too_late) {
    for (WorkerState& worker : state.workers)
      ask_to_leave(now, worker, options.leave_seconds, options, actions, "the stop takes too long");
  } else if (!state.stop_delivered) {
    actions.push_back({Action::Kind::request_stop, 0, 0, 0, ""});
  }
}

// Asks surplus workers to leave. Workers that compute stay rather than others, because they may be the only ones that
// have the state. Of workers that are equal in this, the oldest stay.
void let_surplus_go(double now, Supervision& state, const SupervisionOptions& options, std::vector<Action>& actions) {
  const auto computes = [&](const WorkerState& worker) {
    return std::ranges::find(state.computing_here, worker.pid) != state.computing_here.end();
  };
  int64_t staying = 0;
  for (const bool computing : {true, false}) {
    for (WorkerState& worker : state.workers) {  // oldest first
      if (computes(worker) != computing) continue;
      if (!worker.hangs.empty()) {
        ++staying;
      } else if (!worker.asked && ++staying > state.wanted) {
        ask_to_leave(now, worker, options.leave_seconds, options, actions, "asked " + name_of(worker) + " to leave");
      }
    }
  }
}

void keep_workers(double now, Supervision& state, const SupervisionOptions& options, std::vector<Action>& actions) {
  for (WorkerState& worker : state.workers) {
    if (!worker.hangs.empty()) {
      end_hanging(now, worker, options, actions);
    } else if (worker.asked) {
      ask_to_leave(now, worker, options.leave_seconds, options, actions);
    }
  }
  let_surplus_go(now, state, options, actions);
  const auto asked = [](const WorkerState& worker) { return worker.hangs.empty() && worker.asked; };
  auto staying = static_cast<int64_t>(state.workers.size()) - std::ranges::count_if(state.workers, asked);
  if (!state.begun || state.hold || now < state.next_start) return;
  for (; staying < state.wanted; ++staying) actions.push_back({Action::Kind::start_worker, 0, 0, 0, ""});
}

}  // namespace

std::vector<Action> next_actions(double now, Supervision& state, const SupervisionOptions& options) {
  if (state.stop.immediate()) return kill_all(state);
  if (state.over) return wind_up(now, state, options);
  std::vector<Action> actions;
  keep_coordinator(now, state, options, actions);
  if (state.stop_since) {
    stop_orderly(now, state, options, actions);
  } else {
    keep_workers(now, state, options, actions);
  }
  return actions;
}

}  // namespace sinew::supervise
