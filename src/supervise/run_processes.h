// Starts, observes and ends the processes of a run on this machine, for its supervisor.
//
// RunProcesses is an interface, so that a simulation can have only simulated processes. machine_processes() makes the
// real implementation. Only one thread may use a RunProcesses.
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

  // Both start functions return the pid of the new process, and throw Error if it cannot be started. `workers` is the
  // number of workers that the run should have, on all machines together.
  virtual pid_t start_coordinator(int64_t workers) = 0;
  // `later` means that the worker is not one of the first, so it reads the resolved job from the run directory.
  virtual pid_t start_worker(const std::string& coordinator_url, bool later) = 0;

  struct EndedWorker {
    pid_t pid = 0;
    ProcessEnd end;
    std::vector<LaneActivity> activity;     // the last entries that its lanes posted on the activity board
    std::optional<PostedError> error = {};  // the error that the worker posted on the board
  };
  // The following calls return the processes that have ended, each of them once.
  virtual std::vector<EndedWorker> take_ended_workers() = 0;
  virtual std::optional<ProcessEnd> take_ended_coordinator() = 0;

  virtual std::vector<LaneActivity> activity(pid_t worker) const = 0;
  // Returns false if the process has ended, or computes nothing because a signal or a debugger has stopped it.
  virtual bool runs(pid_t pid) const = 0;
  virtual void send(pid_t pid, int signal) = 0;      // does nothing if the process has ended
  virtual void kill_all() = 0;                       // returns once none of the processes is left
  virtual std::vector<int> descriptors() const = 0;  // they become readable when a process ends
};

struct MachineProcessesOptions {
  WorkerLaunch launch;
  std::string job_name;
  int64_t minimum = 1;              // the coordinator forms no first view with fewer workers
  int64_t workers_per_machine = 1;  // workers that share this machine's cores
  std::string listen = "127.0.0.1";
  bool tls = false;
  int64_t most = 0;  // the most workers that a request to the coordinator may ask for; 0: any number
};

// Starts real processes. Destroying the returned object ends all of them.
std::unique_ptr<RunProcesses> machine_processes(MachineProcessesOptions options);

}  // namespace sinew::supervise
