// Inside store/: decides whether a run may change from one state to another. Every attempt ends exactly once. Pure.
#pragma once

#include <string>

#include "store/store.h"

namespace sinew::store {

struct Transition {
  enum { kAllowed, kNewAttempt, kRepeated, kRefused } verdict = kAllowed;
  std::string why;  // the reason of a refusal; it continues a message that begins with the run's name
};
// Returns whether a run may change from one state to another. Among the states queued, running and paused it may change
// freely, and from each of them to any end state. It leaves an end state only if `reopen`.
Transition judge_transition(RunState from, RunState to, bool reopen);

}  // namespace sinew::store
