// Inside store/: decides whether a run may move from one state to another. Every attempt ends exactly once. Pure.
#pragma once

#include <string>

#include "store/store.h"

namespace sinew::store {

struct Transition {
  enum { kAllowed, kNewAttempt, kRepeated, kRefused } verdict = kAllowed;
  std::string why;  // the reason of a refusal, as the rest of a message that begins with the run's name
};
// Returns whether a run may move from one state to another. A run may move among the states queued, running and paused,
// and from each of them to any end state. It leaves an end state only if `reopen` is set.
Transition judge_transition(RunState from, RunState to, bool reopen);

}  // namespace sinew::store
