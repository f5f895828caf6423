// Collects the events of a run, passes them to the decisions of supervision.h and watchdog.h, and carries out their
// actions. This class uses neither files nor sockets itself, so that a simulation can run it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shell_loop.h"
#include "supervise/coordinator_link.h"
#include "supervise/run_processes.h"
#include "supervise/supervision.h"
#include "supervise/watchdog.h"

namespace sinew::supervise {

struct SupervisorShellOptions {
  std::string run_directory;  // as messages name it
  int64_t workers = 1;
  int64_t elsewhere = 0;     // workers of the run that other supervisors keep alive
  int64_t most = INT64_MAX;  // the most workers that it keeps alive, whatever the coordinator wants
  double hang_seconds = 60;  // see WatchdogOptions::least_seconds
  std::string host;          // this machine's name, as in the coordinator's status
  std::function<void(const std::string&)> say = nullptr;  // events as sentences, for the user
  // Returns why the run directory no longer belongs to the run, or "" if it does. The shell asks once a second. If the
  // directory is lost, the shell ends the run and writes nothing into it. If null, the directory cannot be lost.
  std::function<std::string()> place_lost = nullptr;
  // Receives details for the run's log, without the events that `say` gets.
  std::function<void(const std::string&)> log = nullptr;
  // Returns the exit code in the run's report, if this attempt has written one. Without a report, the shell ends with
  // no exit code that means success.
  std::function<std::optional<int>()> reported_end = nullptr;
};

// One thread makes all calls. `processes`, `coordinator` and `clock` must outlive the shell.
class SupervisorShell final : public Shell {
 public:
  SupervisorShell(SupervisorShellOptions options, RunProcesses& processes, CoordinatorLink& coordinator, Clock& clock);

  void on_signal(int signal) override;
  std::optional<int> turn() override;
  std::vector<int> descriptors() const override { return processes_.descriptors(); }
  // Returns the error of the worker that ended last, if no step was made since. Returns nullopt if it posted none.
  const std::optional<PostedError>& last_error() const { return last_error_; }

 private:
  struct Lost {
    pid_t pid;
    std::string why;
    double since;
    std::optional<double> tried;  // when the newest report was tried
  };

  double now() const { return clock_.monotonic_seconds(); }
  void say(const std::string& sentence) const;
  void reap();
  void talk();
  void report_losses(bool again);
  template <typename Call>
  auto ask(const Call& call) -> decltype(call());
  void watch();
  cluster::LocalProcesses processes_here(const cluster::CoordinatorStatus& status) const;
  std::optional<int> act(const Action& action);
  void start_worker();
  int finish(const Action& action);
  int confirmed_end(int code) const;
  std::optional<int> look_at_place();

  const SupervisorShellOptions options_;
  RunProcesses& processes_;
  CoordinatorLink& coordinator_;
  Clock& clock_;
  Supervision state_;
  Watchdog watchdog_;
  WatchdogOptions watch_options_;
  std::vector<Lost> lost_;  // dead workers that are not yet reported to the coordinator
  std::optional<PostedError> last_error_;
  int64_t started_ = 0;
  double next_poll_ = 0, next_watch_ = 0, next_look_ = 0;
  double turn_began_ = 0;
  double call_seconds_ = 0;  // how long this turn's calls to the coordinator have taken
  bool checkpoint_requested_ = false, said_most_ = false;
};

}  // namespace sinew::supervise
