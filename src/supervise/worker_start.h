// A worker of a group: how it is started, and the loop that restarts one for a run that another process supervises.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/signals.h"
#include "task/task.h"

namespace sinew::supervise {

// Where the two programs are.
struct Programs {
  // Returns the path of the program that runs as the coordinator. Asked at each start, because an upgrade may replace
  // the file while the run goes on.
  std::function<std::string()> sinew = nullptr;
  std::string worker;
};

// What the workers of one run train, and with which addresses they are reached.
struct WorkerLaunch {
  Programs programs;
  std::string run_directory;
  std::string job;  // path of the job file
  std::vector<std::string> overrides;
  bool resume = false, ledger = false, json_log = false;
  double hang_seconds = 60;                 // see WatchdogOptions::least_seconds; members wait for each other by it
  std::string link_listen, link_advertise;  // empty: the address that reaches the coordinator
};

// A task and the process that gets it. The task must live until the worker has read it, so until the worker ends.
struct WorkerStart {
  task::TaskFile task;
  ProcessOptions process;
};

// `coordinator_url` tells which of this machine's addresses the other members can reach. `later`: the worker is not one
// of the first, so it takes the job as the run resolved it. `activity_board`: path of the board to post on, or empty.
WorkerStart worker_start(const WorkerLaunch& launch, const std::string& coordinator_url, bool later,
                         int64_t workers_per_machine, const std::string& activity_board = "");

// Starts workers one after another, as make(later) says, until the run is over or its worker ends for good. Returns the
// exit code. The first stop request from `signals` makes the worker hand over its work and leave; a second one, unless
// it is SIGHUP, kills the worker. `say` gets events as sentences.
int restart_loop(const std::string& run_directory, const std::function<WorkerStart(bool later)>& make,
                 SignalSource& signals, Clock& clock, const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
