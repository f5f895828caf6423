// Simulates the supervisor process of a run. It runs the real SupervisorShell of supervise/ over simulated workers and
// coordinators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fiber.h"
#include "supervise/coordinator_link.h"
#include "supervise/run_processes.h"
#include "supervise/supervisor_shell.h"
#include "worker.h"

namespace sinew::sim {

// The state that outlives a supervisor: all workers of the story, dead or alive.
struct RunOfStory {
  std::vector<std::unique_ptr<Worker>> workers;
  int64_t pids = 100;
};

// The supervisor's only thread is a fiber, because the shell blocks while it waits for the coordinator's responses.
class Supervisor final : public supervise::RunProcesses, public supervise::CoordinatorLink {
 public:
  Supervisor(Scene& scene, RunOfStory& run, int64_t workers);

  const Process process;
  void die();
  // null while no coordinator of this supervisor listens
  const std::shared_ptr<Office>& office() const { return office_; }
  // Calls the run's coordinator, as a person does. Unlike the methods of CoordinatorLink, post() does not wait for the
  // response.
  void post(const std::string& path, const std::string& body, Answer answer);

 private:
  void supervise();
  std::optional<http::Response> call(const std::string& path, const std::string& body);
  void end_coordinator(ProcessEnd end);

  // ---- RunProcesses
  pid_t start_coordinator(int64_t workers) override;
  pid_t start_worker(const std::string& coordinator_url, bool later) override;
  std::vector<EndedWorker> take_ended_workers() override;
  std::optional<ProcessEnd> take_ended_coordinator() override;
  std::vector<LaneActivity> activity(pid_t worker) const override;
  bool runs(pid_t pid) const override;
  void send(pid_t pid, int signal) override;
  void kill_all() override;
  std::vector<int> descriptors() const override { return {}; }

  // ---- CoordinatorLink
  bool connect(pid_t coordinator) override;
  void disconnect() override { connected_ = false; }
  std::string url() const override { return "http://office"; }
  std::optional<cluster::CoordinatorStatus> status() override;
  bool lost(pid_t worker, const std::string& why) override;
  bool control(const std::string& kind, double value, const std::string& reason) override;
  std::optional<int64_t> recorded_end(pid_t) override { return recorded_end_; }
  std::string record_end(int exit_code) override;

  Scene& scene_;
  RunOfStory& run_;
  supervise::SupervisorShell shell_;
  std::vector<Worker*> children_;  // not yet reaped
  pid_t coordinator_ = 0;
  std::shared_ptr<Office> office_;             // the coordinator that this supervisor started last, once it listens
  bool superseded_ = false;                    // a coordinator of another process has taken over
  std::optional<ProcessEnd> coordinator_end_;  // set while the coordinator has ended and is not yet reaped
  std::optional<int64_t> recorded_end_;  // the exit code of the run, if a coordinator ended because the run is over
  bool connected_ = false;
  std::unique_ptr<Fiber> thread_;
};

}  // namespace sinew::sim
