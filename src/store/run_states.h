// Inside store/: the state machine of a run, in which every attempt ends exactly once. Pure.
#pragma once

#include <string>

#include "store/store.h"

namespace sinew::store {

struct Transition {
  enum { kAllowed, kNewAttempt, kRepeated, kRefused } verdict = kAllowed;
  std::string why;  // of a refusal: the rest of a sentence that begins with the run
};
// The states queued, running and paused lead to one another and to an end state. An end state leads nowhere, unless the
// run is reopened.
Transition judge_transition(RunState from, RunState to, bool reopen);

}  // namespace sinew::store
