// The processes of one training run: the coordinator and the workers of this machine. This room starts, watches,
// diagnoses, restarts and ends them.
//
// cli/ and programs that embed a training use it. Decisions are pure functions (supervision.h, watchdog.h,
// deadly_shard.h, launcher.h, chaos_plan.h) that return their reason; supervisor_shell.cpp acts on them. Nothing here
// installs signal handlers, prints, or searches for programs: signals, the receiver of events and the programs' paths
// are arguments. One process can supervise several runs, each on a thread of its own.
#pragma once

#include "supervise/chaos_plan.h"
#include "supervise/launched_worker.h"
#include "supervise/launcher.h"
#include "supervise/outside_worker.h"
#include "supervise/restart_loop.h"
#include "supervise/run_log.h"
#include "supervise/supervisor.h"
#include "supervise/worker_start.h"
