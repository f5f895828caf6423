#include "store/run_states.h"

namespace sinew::store {

const char* to_string(RunState state) {
  switch (state) {
    case RunState::kQueued: return "queued";
    case RunState::kRunning: return "running";
    case RunState::kPaused: return "paused";
    case RunState::kFinished: return "finished";
    case RunState::kFailed: return "failed";
    case RunState::kStopped: return "stopped";
  }
  return "?";
}

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kExperiment: return "experiment";
    case Kind::kRun: return "run";
    case Kind::kModel: return "model";
    case Kind::kVersion: return "version";
    case Kind::kStudy: return "study";
    case Kind::kData: return "data";
    case Kind::kLease: return "lease";
    case Kind::kContent: return "content";
  }
  return "?";
}

bool is_over(RunState state) {
  return state == RunState::kFinished || state == RunState::kFailed || state == RunState::kStopped;
}

Transition judge_transition(RunState from, RunState to, bool reopen) {
  const std::string was = to_string(from), wanted = to_string(to);
  if (reopen) {
    if (is_over(to))
      return {Transition::kRefused, " cannot be reopened as " + wanted + ", only as queued, running or paused"};
    if (is_over(from)) return {Transition::kNewAttempt, ""};
  }
  if (from == to) return {Transition::kRepeated, ""};
  if (is_over(from)) {
    return {Transition::kRefused, " is already " + was + "; an attempt ends only once" +
                                      (is_over(to) ? "" : ", but the run can be reopened")};
  }
  return {Transition::kAllowed, ""};
}

}  // namespace sinew::store
