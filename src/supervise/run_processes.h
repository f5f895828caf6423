// The processes of a run on this machine, as its supervisor starts, observes and ends them.
//
// An interface, because a simulation supervises processes that are events of its world. machine_processes() is the real
// one. One thread uses it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"
#include "base/process.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {

class RunProcesses {
 public:
  virtual ~RunProcesses() = default;

  // Both return the pid of the new process, and throw Error when it cannot be started.
  // `workers`: how many the run should have, on all machines.
  virtual pid_t start_coordinator(int64_t workers) = 0;
  // `later`: the worker is not one of the first, so it takes the job as the run resolved it.
  virtual pid_t start_worker(const std::string& coordinator_url, bool later) = 0;

  struct EndedWorker {
    pid_t pid = 0;
    ProcessEnd end;
    std::vector<LaneActivity> activity;  // the last posts of its lanes
  };
  // Each end is returned once.
  virtual std::vector<EndedWorker> take_ended_workers() = 0;
  virtual std::optional<ProcessEnd> take_ended_coordinator() = 0;

  virtual std::vector<LaneActivity> activity(pid_t worker) const = 0;
  // False: the process has ended, or a signal or a debugger stopped it, so it computes nothing.
  virtual bool runs(pid_t pid) const = 0;
  virtual void send(pid_t pid, int signal) = 0;      // does nothing if the process has ended
  virtual void kill_all() = 0;                       // returns once no process is left
  virtual std::vector<int> descriptors() const = 0;  // they become readable when a process ends
};

struct MachineProcessesOptions {
  WorkerLaunch launch;
  std::string job_name;
  int64_t minimum = 1;              // workers without which the coordinator forms no view
  int64_t workers_per_machine = 1;  // workers that share this machine's cores
  std::string listen = "127.0.0.1";
  bool tls = false;
};

// Real processes. All of them end with the returned object.
std::unique_ptr<RunProcesses> machine_processes(MachineProcessesOptions options);

}  // namespace sinew::supervise
