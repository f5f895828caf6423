// Starts, watches, diagnoses, restarts and ends the processes of one training run: the coordinator, and the workers of
// this machine.
//
// cli/ uses this code, and so do programs that embed a training. Decisions are pure functions that return their reason
// (supervision.h, watchdog.h, deadly_shard.h, launcher.h, chaos_plan.h); supervisor_shell.cpp acts on them. The code in
// supervise/ installs no signal handlers, does not print, and does not search for programs: signals, the receiver of
// events and the programs' paths are arguments. One process can supervise several runs, each on a thread of its own.
#pragma once

#include "supervise/chaos_plan.h"
#include "supervise/disturbed_run.h"
#include "supervise/first_decision.h"
#include "supervise/launched_worker.h"
#include "supervise/launcher.h"
#include "supervise/lock_holder.h"
#include "supervise/outside_worker.h"
#include "supervise/restart_loop.h"
#include "supervise/sandbox_choice.h"
#include "supervise/single_task.h"
#include "supervise/supervisor.h"
#include "supervise/worker_start.h"
