#include "supervise/run_processes.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

namespace sinew::supervise {
namespace {

class MachineProcesses final : public RunProcesses {
 public:
  explicit MachineProcesses(MachineProcessesOptions options) : options_(std::move(options)) {}

  pid_t start_coordinator(int64_t workers) override {
    ProcessOptions process;
    process.command = {options_.launch.programs.sinew(),
                       "coordinator",
                       options_.launch.run_directory,
                       "--workers",
                       std::to_string(workers),
                       "--min",
                       std::to_string(std::min(options_.minimum, workers)),
                       "--listen",
                       options_.listen,
                       "--job",
                       options_.job_name};
    if (options_.most > 0) process.command.insert(process.command.end(), {"--most", std::to_string(options_.most)});
    process.command.emplace_back(options_.tls ? "--tls" : "--insecure");
    process.death_signal = SIGTERM;
    coordinator_.emplace(process);
    return coordinator_->pid();
  }

  pid_t start_worker(const std::string& coordinator_url, bool later) override {
    ChildActivityBoard board;
    WorkerStart start = worker_start(options_.launch, coordinator_url, later, options_.workers_per_machine,
                                     board.path(), Parent::supervisor);
    Worker worker{std::move(board), std::move(start.task), Process(start.process)};
    const pid_t pid = worker.process.pid();
    workers_.emplace(pid, std::move(worker));
    return pid;
  }

  std::vector<EndedWorker> take_ended_workers() override {
    std::vector<EndedWorker> ended;
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const auto end = worker->second.process.wait();
      if (!end) {
        ++worker;
        continue;
      }
      ended.push_back({worker->first, *end, worker->second.board.read(), worker->second.board.error()});
      worker = workers_.erase(worker);
    }
    return ended;
  }

  std::optional<ProcessEnd> take_ended_coordinator() override {
    if (!coordinator_) return std::nullopt;
    const auto end = coordinator_->wait();
    if (end) coordinator_.reset();
    return end;
  }

  std::vector<LaneActivity> activity(pid_t worker) const override { return workers_.at(worker).board.read(); }

  bool runs(pid_t pid) const override {
    const auto facts = process_facts(pid);
    return facts && !facts->stopped;
  }

  void send(pid_t pid, int signal) override {
    if (coordinator_ && coordinator_->pid() == pid) coordinator_->send(signal);
    if (const auto worker = workers_.find(pid); worker != workers_.end()) worker->second.process.send(signal);
  }

  void kill_all() override {
    workers_.clear();
    coordinator_.reset();
  }

  std::vector<int> descriptors() const override {
    std::vector<int> all;
    for (const auto& [pid, worker] : workers_) all.push_back(worker.process.descriptor());
    if (coordinator_) all.push_back(coordinator_->descriptor());
    return all;
  }

 private:
  struct Worker {
    ChildActivityBoard board;
    task::TaskFile task;  // kept here because the worker may still read the file
    Process process;
  };

  const MachineProcessesOptions options_;
  std::map<pid_t, Worker> workers_;
  std::optional<Process> coordinator_;
};

}  // namespace

std::unique_ptr<RunProcesses> machine_processes(MachineProcessesOptions options) {
  return std::make_unique<MachineProcesses>(std::move(options));
}

}  // namespace sinew::supervise
