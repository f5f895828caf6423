#include "jobs/attempt_state_machine.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>

#include "base/check.h"
#include "base/exit_code.h"
#include "base/signals.h"

namespace sinew::jobs {
namespace {

constexpr double kAfterKillSeconds = 2;  // seconds between two SIGKILLs, if the first has no effect
// The time that leftover processes get to end. They may have to finish a write to a slow disk.
constexpr double kLeftoverSeconds = 60;

std::string seconds_text(double seconds) {
  const double rounded = std::round(seconds * 10) / 10;
  std::string text = std::to_string(rounded);
  text.resize(text.find('.') + 2);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " s";
}

// Returns whether the stop is part of a normal run rather than a failure of the attempt.
bool is_orderly(StopReason reason) {
  return reason == StopReason::stop || reason == StopReason::budget || reason == StopReason::early_stop ||
         reason == StopReason::objective;
}

// Returns the end of the first rank that failed. Later ranks may have been ended by sinew because of that failure.
auto first_failure(const AttemptFacts& facts) {
  return std::ranges::find_if(facts.ends, [](const ProcessEnd& end) { return end.signal != 0 || end.code != 0; });
}

int64_t allowed(const spec::RetryOptions& retries, ExitReason reason, const AttemptFacts& facts) {
  switch (reason) {
    case ExitReason::crash: return retries.crash;
    case ExitReason::out_of_memory: return retries.out_of_memory;
    case ExitReason::timeout: return retries.timeout;
    case ExitReason::preempted: return retries.preempted;
    case ExitReason::exit: {
      const auto failure = first_failure(facts);
      const bool listed = retries.exit_codes.empty() || failure == facts.ends.end() || failure->signal != 0 ||
                          std::ranges::find(retries.exit_codes, failure->code) != retries.exit_codes.end();
      return listed ? retries.exit : 0;
    }
    default: return 0;
  }
}

struct Finish {
  std::string status;
  int code = 0;
};

Finish stopped_by(const AttemptStateMachine& state) {
  return {"stopped", 128 + state.stop.signal()};
}

// Returns how the run ends after its last attempt.
Finish finish_of(const AttemptStateMachine& state) {
  const ExitReason reason = state.last->reason;
  const bool saved = reason == ExitReason::preempted;
  if (state.unkillable) return {"failed", kTrainingError};
  if (reason != ExitReason::ended && !saved)
    return reason == ExitReason::done ? Finish{"done", kDone} : Finish{"failed", kTrainingError};
  if (state.stop.requested()) return saved ? Finish{"stopped", kResumable} : stopped_by(state);
  if (state.stop_reason == StopReason::budget) return {"budget", kBudget};
  return state.stop_reason && is_orderly(*state.stop_reason) ? Finish{"done", kDone} : Finish{"stopped", kResumable};
}

Action finish(AttemptStateMachine& state, Finish how, std::string why) {
  state.phase = AttemptStateMachine::Phase::over;
  return {Action::Kind::finish, std::move(why), std::move(how.status), how.code};
}

// These functions return the times at which the running attempt exceeds the budget or its time limit. next_actions and
// next_deadline both use them, so that the two agree.
double end_of_budget(const AttemptStateMachine& state, const Policy& policy) {
  return policy.budget_seconds > 0 ? state.began + (policy.budget_seconds - state.used_seconds)
                                   : std::numeric_limits<double>::infinity();
}

double end_of_attempt(const AttemptStateMachine& state, const Policy& policy) {
  return policy.attempt_seconds > 0 ? state.began + policy.attempt_seconds : std::numeric_limits<double>::infinity();
}

void kill_again(double now, AttemptStateMachine& state, const std::string& why, std::vector<Action>& actions) {
  if (state.killed >= 0 && now < state.killed + kAfterKillSeconds) return;
  actions.push_back({Action::Kind::kill, state.killed >= 0 ? "" : why, "", 0});
  state.killed = now;
}

// Asks the attempt to end, kills it when the grace is over, and kills it again while a process remains.
void terminate_or_kill(double now, AttemptStateMachine& state, const Policy& policy, std::vector<Action>& actions) {
  // After a kill, the state machine does not ask the attempt again, even if the reason has changed.
  const bool at_once = state.killed >= 0 || state.stop.immediate() || state.stop_reason == StopReason::memory ||
                       state.stop_reason == StopReason::pids;
  if (state.terminated < 0 && !at_once) {
    state.terminated = now;
    actions.push_back({Action::Kind::terminate, state.stop_text, "", 0});
  }
  if (!at_once && now < state.terminated + policy.grace_seconds) return;
  kill_again(now, state,
             at_once ? state.stop_text : "the command did not end within " + seconds_text(policy.grace_seconds),
             actions);
}

}  // namespace

const char* to_string(ExitReason reason) {
  switch (reason) {
    case ExitReason::done: return "done";
    case ExitReason::exit: return "exit";
    case ExitReason::crash: return "crash";
    case ExitReason::out_of_memory: return "out_of_memory";
    case ExitReason::timeout: return "timeout";
    case ExitReason::preempted: return "preempted";
    case ExitReason::ended: return "ended";
    case ExitReason::no_start: return "no_start";
  }
  return "";
}

AttemptResult classify(const AttemptFacts& facts, std::optional<StopReason> stop, const std::string& stop_text) {
  const bool orderly = stop && is_orderly(*stop);
  if (!facts.no_start.empty() && !facts.transient) return {ExitReason::no_start, facts.no_start};
  if (!facts.no_start.empty() && !orderly) return {ExitReason::crash, facts.no_start};
  if (stop == StopReason::memory) return {ExitReason::out_of_memory, stop_text};
  const bool complete = !facts.ends.empty() && !facts.reaper_lost;  // the end of every rank is known
  const auto failure = first_failure(facts);
  const bool saved = std::ranges::any_of(facts.ends, [](const ProcessEnd& end) { return end.code == kResumable; });
  if (failure == facts.ends.end() && complete) return {ExitReason::done, "the command ended with exit code 0"};
  if (orderly && saved) return {ExitReason::preempted, stop_text + "; it saved its state before (exit code 75)"};
  // even if the kernel has killed processes at the memory limit before: the command did without them
  if (orderly) return {ExitReason::ended, stop_text};
  if (facts.over_memory_limit)
    return {ExitReason::out_of_memory, "the command needed more memory than resources.memory"};
  if (stop == StopReason::timeout) return {ExitReason::timeout, stop_text};
  if (stop == StopReason::pids) return {ExitReason::exit, stop_text};
  if (failure == facts.ends.end()) return {ExitReason::crash, "the reaper that watches the command was killed"};
  const auto at = static_cast<size_t>(failure - facts.ends.begin());
  const bool several = facts.ends.size() > 1 || (at < facts.ranks.size() && facts.ranks[at] != 0);
  const int64_t rank = facts.ranks[at];
  const std::string who = several ? "rank " + std::to_string(rank) : "the command";
  const std::string why = who + (failure->signal != 0 ? " was " : " ") + to_string(*failure);
  if (failure->signal == 0) return {failure->code == kResumable ? ExitReason::preempted : ExitReason::exit, why, rank};
  if (failure->signal == SIGKILL && facts.machine_out_of_memory && !facts.reaper_lost)
    return {ExitReason::out_of_memory, why + ", and the machine ran out of memory at that time", rank};
  return {ExitReason::crash, why, rank};
}

double backoff_seconds(const spec::RetryOptions& retries, int64_t retried, double jitter) {
  const double doubled = retries.backoff_seconds * std::exp2(static_cast<double>(std::min<int64_t>(retried, 60) - 1));
  return std::min(doubled, retries.longest_seconds) * (0.5 + 0.5 * jitter);
}

void attempt_began(double now, AttemptStateMachine& state) {
  SINEW_CHECK(state.phase == AttemptStateMachine::Phase::waiting, "an attempt begins only if none runs");
  state.phase = AttemptStateMachine::Phase::running;
  ++state.attempt;
  state.began = now;
  state.stop_reason.reset();
  state.stop_text.clear();
  state.terminated = state.killed = state.leftovers_since = -1;
}

std::string request_stop(double now, AttemptStateMachine& state, int signal) {
  const bool first = !state.stop.requested();
  state.stop.add(signal);
  if (!first && !can_insist(signal)) return "";
  state.next_start = std::min(state.next_start, now);
  const std::string why = "stopped by " + signal_name(signal);
  if (state.phase == AttemptStateMachine::Phase::running && state.stop_reason != StopReason::stop) {
    state.stop_reason = StopReason::stop;  // replaces every other reason
    state.stop_text = why;
  }
  if (!can_insist(signal)) return why;
  return state.stop.immediate() ? "" : why + "; a second stop request kills it at once";
}

std::string stop_attempt(AttemptStateMachine& state, StopReason reason, const std::string& why) {
  if (state.phase != AttemptStateMachine::Phase::running || state.stop_reason) return "";
  state.stop_reason = reason;
  state.stop_text = why;
  return why;
}

void only_leftovers_remain(double now, AttemptStateMachine& state) {
  if (state.phase == AttemptStateMachine::Phase::running && state.leftovers_since < 0) state.leftovers_since = now;
}

AttemptResult attempt_ended(double now, AttemptStateMachine& state, const Policy& policy, const AttemptFacts& facts,
                            double jitter) {
  SINEW_CHECK(state.phase == AttemptStateMachine::Phase::running, "only a running attempt can end");
  state.used_seconds += now - state.began;
  AttemptResult result = classify(facts, state.stop_reason, state.stop_text);
  state.unkillable = facts.unkillable;
  if (facts.unkillable) result.why += "; one of its processes cannot be killed";
  state.last = result;
  state.phase = AttemptStateMachine::Phase::ended;
  const int64_t most = allowed(policy.retries, result.reason, facts);
  const bool stops = state.stop.requested() || (state.stop_reason && is_orderly(*state.stop_reason));
  if (stops || facts.unkillable || state.retried[result.reason] >= most) return result;
  const int64_t retried = ++state.retried[result.reason];
  const double wait = result.reason == ExitReason::preempted ? 0 : backoff_seconds(policy.retries, retried, jitter);
  state.phase = AttemptStateMachine::Phase::waiting;
  state.next_start = now + wait;
  result.why += "; attempt " + std::to_string(state.attempt + 1) + " starts" +
                (wait > 0 ? " in " + seconds_text(wait) : "") + " (retry " + std::to_string(retried) + " of " +
                std::to_string(most) + " after " + to_string(result.reason) + ")";
  return result;
}

std::vector<Action> next_actions(double now, AttemptStateMachine& state, const Policy& policy) {
  std::vector<Action> actions;
  const bool has_budget = policy.budget_seconds > 0;
  switch (state.phase) {
    case AttemptStateMachine::Phase::over: break;
    case AttemptStateMachine::Phase::ended: actions.push_back(finish(state, finish_of(state), state.last->why)); break;
    case AttemptStateMachine::Phase::waiting:
      if (state.stop.requested()) {
        const bool saved = state.last && state.last->reason == ExitReason::preempted;
        actions.push_back(finish(state, saved ? Finish{"stopped", kResumable} : stopped_by(state),
                                 "stopped by " + signal_name(state.stop.signal()) + " between two attempts"));
      } else if (has_budget && state.used_seconds >= policy.budget_seconds) {
        actions.push_back(finish(state, {"budget", kBudget}, policy.budget_option + " is used up"));
      } else if (now >= state.next_start) {
        actions.push_back({Action::Kind::start, "", "", 0});
      }
      break;
    case AttemptStateMachine::Phase::running:
      if (now >= end_of_budget(state, policy))
        stop_attempt(state, StopReason::budget,
                     policy.budget_option == "budget.time"
                         ? "budget.time of " + seconds_text(policy.budget_seconds) + " is used up"
                         : policy.budget_option + " is used up after " + seconds_text(policy.budget_seconds));
      if (now >= end_of_attempt(state, policy))
        stop_attempt(state, StopReason::timeout, "the attempt took longer than budget.attempt");
      if (state.stop_reason) {
        terminate_or_kill(now, state, policy, actions);
      } else if (state.leftovers_since >= 0 && now >= state.leftovers_since + kLeftoverSeconds) {
        kill_again(now, state, "the processes that it left do not end", actions);
      }
      break;
  }
  return actions;
}

std::optional<double> next_deadline(const AttemptStateMachine& state, const Policy& policy) {
  if (state.phase == AttemptStateMachine::Phase::waiting) return state.next_start;
  if (state.phase != AttemptStateMachine::Phase::running) return std::nullopt;
  std::optional<double> moment;
  const auto at = [&](double time) { moment = moment ? std::min(*moment, time) : time; };
  if (state.killed >= 0) {
    at(state.killed + kAfterKillSeconds);
  } else if (state.terminated >= 0) {
    at(state.terminated + policy.grace_seconds);
  } else if (state.leftovers_since >= 0) {
    at(state.leftovers_since + kLeftoverSeconds);
  }
  const double limit = std::min(end_of_budget(state, policy), end_of_attempt(state, policy));
  if (!state.stop_reason && std::isfinite(limit)) at(limit);
  return moment;
}

}  // namespace sinew::jobs
