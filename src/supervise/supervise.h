// The processes of one training run: the coordinator and the workers of this machine, started, watched, diagnosed,
// started again and ended.
//
// For cli/ and for programs that embed a training. Decisions are pure functions (supervision.h, watchdog.h,
// deadly_shard.h, launcher.h, chaos_plan.h) that return their reason; supervisor.cpp acts on them. Nothing here
// installs signal handlers, prints, or looks for programs: signals, the sink of events and the programs' paths are
// arguments. Several runs may be supervised in one process, each on a thread of its own.
#pragma once

#include "supervise/chaos_plan.h"
#include "supervise/launched_worker.h"
#include "supervise/launcher.h"
#include "supervise/run_log.h"
#include "supervise/supervisor.h"
#include "supervise/worker_start.h"
