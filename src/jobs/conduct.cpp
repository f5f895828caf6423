#include "jobs/conduct.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>

#include "base/check.h"
#include "base/exit_code.h"
#include "base/signals.h"

namespace sinew::jobs {
namespace {

constexpr double kAfterKillSeconds = 2;  // between two SIGKILLs, for what does not die of the first
constexpr double kRestSeconds =
    60;  // for what is left when all ranks have ended; a write to a slow disk may have to finish

std::string seconds_text(double seconds) {
  const double rounded = std::round(seconds * 10) / 10;
  std::string text = std::to_string(rounded);
  text.resize(text.find('.') + 2);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " s";
}

bool is_wish_of_ours(Cause cause) {
  return cause == Cause::stop || cause == Cause::budget || cause == Cause::early_stop || cause == Cause::objective;
}

// The first that failed; those after it may have been ended for its sake.
auto culprit_of(const AttemptFacts& facts) {
  return std::ranges::find_if(facts.ends, [](const ProcessEnd& end) { return end.signal != 0 || end.code != 0; });
}

int64_t allowed(const spec::RetryOptions& retries, Ending ending, const AttemptFacts& facts) {
  switch (ending) {
    case Ending::crash: return retries.crash;
    case Ending::out_of_memory: return retries.out_of_memory;
    case Ending::timeout: return retries.timeout;
    case Ending::preempted: return retries.preempted;
    case Ending::exit: {
      const auto culprit = culprit_of(facts);
      const bool listed = retries.exit_codes.empty() || culprit == facts.ends.end() || culprit->signal != 0 ||
                          std::ranges::find(retries.exit_codes, culprit->code) != retries.exit_codes.end();
      return listed ? retries.exit : 0;
    }
    default: return 0;
  }
}

struct Finish {
  std::string status;
  int code = 0;
};

Finish stopped_by(const Conduct& state) {
  return {"stopped", 128 + state.stop_signal};
}

// How the run ends when its last attempt ended so.
Finish finish_of(const Conduct& state) {
  const Ending ending = state.last->ending;
  const bool saved = ending == Ending::preempted;
  if (state.left) return {"failed", kTrainingError};
  if (ending != Ending::ended && !saved)
    return ending == Ending::done ? Finish{"done", kDone} : Finish{"failed", kTrainingError};
  if (state.stop_signal != 0) return saved ? Finish{"stopped", kResumable} : stopped_by(state);
  if (state.cause == Cause::budget) return {"budget", kBudget};
  return state.cause && is_wish_of_ours(*state.cause) ? Finish{"done", kDone} : Finish{"stopped", kResumable};
}

Action finish(Conduct& state, Finish how, std::string why) {
  state.phase = Conduct::Phase::over;
  return {Action::Kind::finish, std::move(why), std::move(how.status), how.code};
}

// When an attempt that runs has used up what it may take; the same numbers for asking and for waiting.
double end_of_budget(const Conduct& state, const Policy& policy) {
  return policy.budget_seconds > 0 ? state.began + (policy.budget_seconds - state.used_seconds)
                                   : std::numeric_limits<double>::infinity();
}

double end_of_attempt(const Conduct& state, const Policy& policy) {
  return policy.attempt_seconds > 0 ? state.began + policy.attempt_seconds : std::numeric_limits<double>::infinity();
}

void kill_again(double now, Conduct& state, const std::string& why, std::vector<Action>& actions) {
  if (state.killed >= 0 && now < state.killed + kAfterKillSeconds) return;
  actions.push_back({Action::Kind::kill, state.killed >= 0 ? "" : why, "", 0});
  state.killed = now;
}

// Asked nicely first, then killed when the grace is over, and again while something is left.
void push_out(double now, Conduct& state, const Policy& policy, std::vector<Action>& actions) {
  // Once killed it is not asked any more, whatever the reason has become.
  const bool at_once =
      state.killed >= 0 || state.stop_signals > 1 || state.cause == Cause::memory || state.cause == Cause::pids;
  if (state.terminated < 0 && !at_once) {
    state.terminated = now;
    actions.push_back({Action::Kind::terminate, state.cause_text, "", 0});
  }
  if (!at_once && now < state.terminated + policy.grace_seconds) return;
  kill_again(now, state, at_once ? state.cause_text : "it did not end within " + seconds_text(policy.grace_seconds),
             actions);
}

}  // namespace

const char* word_for(Ending ending) {
  switch (ending) {
    case Ending::done: return "done";
    case Ending::exit: return "exit";
    case Ending::crash: return "crash";
    case Ending::out_of_memory: return "out_of_memory";
    case Ending::timeout: return "timeout";
    case Ending::preempted: return "preempted";
    case Ending::ended: return "ended";
    case Ending::no_start: return "no_start";
  }
  return "";
}

Judgement judge(const AttemptFacts& facts, std::optional<Cause> cause, const std::string& cause_text) {
  const bool wished = cause && is_wish_of_ours(*cause);
  if (!facts.no_start.empty() && !facts.for_now) return {Ending::no_start, facts.no_start};
  if (!facts.no_start.empty() && !wished) return {Ending::crash, facts.no_start};
  if (cause == Cause::memory) return {Ending::out_of_memory, cause_text};
  const bool watched_to_its_end = !facts.ends.empty() && !facts.guardian_lost;
  const auto culprit = culprit_of(facts);
  const bool saved = std::ranges::any_of(facts.ends, [](const ProcessEnd& end) { return end.code == kResumable; });
  if (culprit == facts.ends.end() && watched_to_its_end) return {Ending::done, "it ended with exit code 0"};
  if (wished && saved) return {Ending::preempted, cause_text + "; it saved before it ended (exit code 75)"};
  if (wished) return {Ending::ended, cause_text};  // what the kernel killed of it before was not its end
  if (facts.over_memory_limit) return {Ending::out_of_memory, "it needed more than resources.memory"};
  if (cause == Cause::timeout) return {Ending::timeout, cause_text};
  if (cause == Cause::pids) return {Ending::exit, cause_text};
  if (culprit == facts.ends.end()) return {Ending::crash, "the process that watches over it was killed"};
  const auto at = static_cast<size_t>(culprit - facts.ends.begin());
  const bool several = facts.ends.size() > 1 || (at < facts.ranks.size() && facts.ranks[at] != 0);
  const int64_t rank = facts.ranks[at];
  const std::string who = several ? "rank " + std::to_string(rank) : "it";
  const std::string why = who + (culprit->signal != 0 ? " was " : " ") + to_string(*culprit);
  if (culprit->signal == 0) return {culprit->code == kResumable ? Ending::preempted : Ending::exit, why, rank};
  if (culprit->signal == SIGKILL && facts.machine_out_of_memory && !facts.guardian_lost)
    return {Ending::out_of_memory, why + ", and the machine ran out of memory meanwhile", rank};
  return {Ending::crash, why, rank};
}

double backoff_seconds(const spec::RetryOptions& retries, int64_t retried, double jitter) {
  const double doubled = retries.backoff_seconds * std::exp2(static_cast<double>(std::min<int64_t>(retried, 60) - 1));
  return std::min(doubled, retries.longest_seconds) * (0.5 + 0.5 * jitter);
}

void attempt_began(double now, Conduct& state) {
  SINEW_CHECK(state.phase == Conduct::Phase::waiting, "an attempt begins only when none runs");
  state.phase = Conduct::Phase::running;
  ++state.attempt;
  state.began = now;
  state.cause.reset();
  state.cause_text.clear();
  state.terminated = state.killed = state.rest_since = -1;
}

std::string stop_asked(double now, Conduct& state, int signal) {
  if (!can_insist(signal) && state.stop_signal != 0) return "";
  if (can_insist(signal)) ++state.stop_signals;
  state.stop_signal = signal;
  state.next_start = std::min(state.next_start, now);
  const std::string why = "stopped by " + signal_name(signal);
  if (state.phase == Conduct::Phase::running && state.cause != Cause::stop) {
    state.cause = Cause::stop;  // before every other reason
    state.cause_text = why;
  }
  if (!can_insist(signal)) return why;
  return state.stop_signals == 1 ? why + "; once more kills it at once" : "";
}

std::string end_attempt(Conduct& state, Cause cause, const std::string& why) {
  if (state.phase != Conduct::Phase::running || state.cause) return "";
  state.cause = cause;
  state.cause_text = why;
  return why;
}

void only_rest_left(double now, Conduct& state) {
  if (state.phase == Conduct::Phase::running && state.rest_since < 0) state.rest_since = now;
}

Judgement attempt_ended(double now, Conduct& state, const Policy& policy, const AttemptFacts& facts, double jitter) {
  SINEW_CHECK(state.phase == Conduct::Phase::running, "only an attempt that runs can end");
  state.used_seconds += now - state.began;
  Judgement judged = judge(facts, state.cause, state.cause_text);
  state.left = facts.left;
  if (facts.left) judged.why += "; something of it can not be killed";
  state.last = judged;
  state.phase = Conduct::Phase::ended;
  const int64_t most = allowed(policy.retries, judged.ending, facts);
  const bool wished = state.stop_signal != 0 || (state.cause && is_wish_of_ours(*state.cause));
  if (wished || facts.left || state.retried[judged.ending] >= most) return judged;
  const int64_t retried = ++state.retried[judged.ending];
  const double wait = judged.ending == Ending::preempted ? 0 : backoff_seconds(policy.retries, retried, jitter);
  state.phase = Conduct::Phase::waiting;
  state.next_start = now + wait;
  judged.why += "; attempt " + std::to_string(state.attempt + 1) + " begins" +
                (wait > 0 ? " in " + seconds_text(wait) : "") + " (retry " + std::to_string(retried) + " of " +
                std::to_string(most) + " after " + word_for(judged.ending) + ")";
  return judged;
}

std::vector<Action> next_actions(double now, Conduct& state, const Policy& policy) {
  std::vector<Action> actions;
  const bool has_budget = policy.budget_seconds > 0;
  switch (state.phase) {
    case Conduct::Phase::over: break;
    case Conduct::Phase::ended: actions.push_back(finish(state, finish_of(state), state.last->why)); break;
    case Conduct::Phase::waiting:
      if (state.stop_signal != 0) {
        const bool saved = state.last && state.last->ending == Ending::preempted;
        actions.push_back(finish(state, saved ? Finish{"stopped", kResumable} : stopped_by(state),
                                 "stopped by " + signal_name(state.stop_signal) + " between two attempts"));
      } else if (has_budget && state.used_seconds >= policy.budget_seconds) {
        actions.push_back(finish(state, {"budget", kBudget}, "budget.time is used up"));
      } else if (now >= state.next_start) {
        actions.push_back({Action::Kind::start, "", "", 0});
      }
      break;
    case Conduct::Phase::running:
      if (now >= end_of_budget(state, policy))
        end_attempt(state, Cause::budget, "budget.time of " + seconds_text(policy.budget_seconds) + " is used up");
      if (now >= end_of_attempt(state, policy))
        end_attempt(state, Cause::timeout, "the attempt took longer than budget.attempt");
      if (state.cause) {
        push_out(now, state, policy, actions);
      } else if (state.rest_since >= 0 && now >= state.rest_since + kRestSeconds) {
        kill_again(now, state, "what it left behind does not end", actions);
      }
      break;
  }
  return actions;
}

std::optional<double> next_moment(const Conduct& state, const Policy& policy) {
  if (state.phase == Conduct::Phase::waiting) return state.next_start;
  if (state.phase != Conduct::Phase::running) return std::nullopt;
  std::optional<double> moment;
  const auto at = [&](double time) { moment = moment ? std::min(*moment, time) : time; };
  if (state.killed >= 0) {
    at(state.killed + kAfterKillSeconds);
  } else if (state.terminated >= 0) {
    at(state.terminated + policy.grace_seconds);
  } else if (state.rest_since >= 0) {
    at(state.rest_since + kRestSeconds);
  }
  const double limit = std::min(end_of_budget(state, policy), end_of_attempt(state, policy));
  if (!state.cause && std::isfinite(limit)) at(limit);
  return moment;
}

}  // namespace sinew::jobs
