// Prepares the start of a group's worker: its task, and the options of the process that gets the task.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "task/task.h"

namespace sinew::supervise {

// The paths of the two programs.
struct Programs {
  // Returns the path of the program that runs as the coordinator. It is called at each start, because an upgrade may
  // replace the file while the run continues.
  std::function<std::string()> sinew = nullptr;
  std::string worker;
};

// What the workers of one run train, and at which addresses they can be reached.
struct WorkerLaunch {
  Programs programs;
  std::string run_directory;
  std::string job, job_text;  // see task::Train
  std::vector<std::string> overrides;
  bool resume = false, ledger = false, json_log = false;
  double hang_seconds = 60;  // see WatchdogOptions::least_seconds; also the timeout of members that wait for each other
  std::string link_listen, link_advertise;  // if empty, the address that reaches the coordinator
  std::optional<task::Sandbox> sandbox;     // nullopt: the workers are not confined
};

// A task and the process that gets it. The task must live until the worker has read it, so the caller keeps it until
// the worker ends.
struct WorkerStart {
  task::TaskFile task;
  ProcessOptions process;
};

// Fixes the address at which confined workers listen. Call it before the first of them starts: later, the code of a
// model may have changed coordinator.json, and this process must not resolve a name that this code has chosen.
WorkerLaunch with_fixed_address(WorkerLaunch launch);

// `coordinator_url` determines which of this machine's addresses the other members can reach. `later` means that the
// worker is not one of the first, so it reads the resolved job from the run directory. `activity_board` is the path of
// the board on which the worker posts; it may be empty. A worker ends with its parent process. But once a worker of the
// run's supervisor is a member, it stays alive when the supervisor dies, because the coordinator dies with the
// supervisor, and the members elect another one.
enum class Parent { restart_loop, supervisor };
WorkerStart worker_start(const WorkerLaunch& launch, const std::string& coordinator_url, bool later,
                         int64_t workers_per_machine, const std::string& activity_board = "",
                         Parent parent = Parent::restart_loop);

// The start of the worker that only decides (task::Train::decide).
WorkerStart decision_start(const WorkerLaunch& launch);

}  // namespace sinew::supervise
