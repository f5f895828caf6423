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

const char* to_string(TrialState state) {
  switch (state) {
    case TrialState::kWaiting: return "waiting";
    case TrialState::kRunning: return "running";
    case TrialState::kDone: return "done";
    case TrialState::kPruned: return "pruned";
    case TrialState::kFailed: return "failed";
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

MoveVerdict judge_move(RunState from, RunState to, bool reopen) {
  const std::string was = to_string(from), wanted = to_string(to);
  if (reopen) {
    if (is_over(to)) return {MoveVerdict::kRefused, "a run is opened again to be queued or to run, not as " + wanted};
    if (is_over(from)) return {MoveVerdict::kBeginAnew, "it was " + was};
  }
  if (from == to) return {MoveVerdict::kRepeated, "it is " + was + " already"};
  if (is_over(from)) {
    return {MoveVerdict::kRefused,
            "it is " + was + ", and an attempt ends once" + (is_over(to) ? "" : "; it can be opened again")};
  }
  if (to == RunState::kQueued && from == RunState::kRunning) return {MoveVerdict::kGo, "it goes back to the queue"};
  return {MoveVerdict::kGo, "it was " + was};
}

}  // namespace sinew::store
