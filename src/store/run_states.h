// Inside store/: the states a run goes through, and that each attempt of it ends exactly once. Pure.
#pragma once

#include <string>

#include "store/store.h"

namespace sinew::store {

struct MoveVerdict {
  enum { kGo, kBeginAnew, kRepeated, kRefused } what = kGo;
  std::string why;
};
// queued, running and paused lead to one another and to an end; an end leads nowhere, unless the run is opened again.
MoveVerdict judge_move(RunState from, RunState to, bool reopen);

}  // namespace sinew::store
