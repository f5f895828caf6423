#include "supervise/supervisor.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>

#include "base/activity_board.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/process.h"
#include "base/shell_loop.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"
#include "supervise/deadly_shard.h"
#include "supervise/run_log.h"
#include "supervise/supervision.h"
#include "supervise/watchdog.h"

namespace sinew::supervise {
namespace {

constexpr double kPollSeconds = 0.2;   // between two questions to the coordinator
constexpr double kTurnSeconds = 0.05;  // the longest sleep of the loop
constexpr double kAnswerSeconds = 1;   // for an answer; a healthy coordinator needs a millisecond
constexpr double kReportSeconds = 5;   // after that the group has noticed a lost worker by itself
constexpr double kWatchSeconds = 0.5;  // between two looks at what the workers do

class Supervisor final : public Shell {
 public:
  Supervisor(const SupervisorOptions& options, Clock& clock)
      : options_(options),
        directory_(options.launch.run_directory),
        clock_(clock),
        log_(directory_, "supervisor", clock) {
    state_.wanted = options.workers;
    auto lock = rundir::RunLock::take(directory_);
    if (!lock) throw Error("RUN_IN_USE", lock.error(), "sinew ps " + directory_ + " shows its workers");
    lock_ = std::move(*lock);
    // The view of an attempt whose members have all ended.
    system_disk().remove_file(rundir::file_in(directory_, rundir::kViewFile));
    watch_options_.least_seconds = options.launch.hang_seconds;
  }

  void on_signal(int signal) override {
    if (signal == SIGUSR1) {
      checkpoint_requested_ = true;
      return;
    }
    const bool first = !state_.stop_since;
    stop_requested(now(), state_, signal);
    if (first) say("stopping after this step; once more stops at once");
  }

  std::optional<int> turn() override {
    reap();
    talk();
    watch();
    for (const Action& action : next_actions(now(), state_)) {
      if (const auto code = act(action)) return code;
    }
    return std::nullopt;
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
    task::TaskFile task;
    Process process;
  };
  struct Lost {
    pid_t pid;
    std::string why;
    double since;
    bool tried = false;
  };

  double now() const { return clock_.monotonic_seconds(); }

  void say(const std::string& sentence) {
    if (sentence.empty()) return;
    log_.write(sentence);
    if (options_.say) options_.say(sentence);
  }

  void reap() {
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const auto end = worker->second.process.wait();
      if (!end) {
        ++worker;
        continue;
      }
      const pid_t pid = worker->first;
      const std::vector<Work> doing = in_flight(worker->second.board.read());
      worker = workers_.erase(worker);
      lost_.push_back({pid, to_string(*end), now()});
      say(worker_ended(now(), state_, pid, *end, doing));
    }
    if (!coordinator_) return;
    if (const auto end = coordinator_->wait()) {
      const auto info = cluster::coordinator_info_now(directory_);
      const bool its_own = info && info->pid == coordinator_->pid();
      coordinator_.reset();
      client_.reset();
      say(coordinator_ended(now(), state_, *end, its_own ? info->exit_code : std::nullopt));
    }
  }

  // A stopped process computes nothing, and the coordinator notices that only a second later.
  static cluster::LocalProcesses processes_here(const cluster::CoordinatorStatus& status) {
    cluster::LocalProcesses here = cluster::processes_on(host_name(), status);
    std::erase_if(here.computing, [](pid_t pid) {
      const auto facts = process_facts(pid);
      return !facts || facts->stopped;
    });
    return here;
  }

  // Tells the coordinator what it should know and asks for the group's status. A call that fails is made again at the
  // next poll.
  void talk() {
    if (!find_coordinator()) return;
    const bool poll = now() >= next_poll_;
    std::erase_if(lost_, [&](Lost& lost) {
      const bool try_now = poll || !lost.tried;
      lost.tried = true;
      return now() - lost.since > kReportSeconds || (try_now && client_->lost(lost.pid, lost.why));
    });
    if (!poll) return;
    if (checkpoint_requested_ && client_->control("checkpoint", 0, "SIGUSR1")) checkpoint_requested_ = false;
    const auto status = client_->status();
    next_poll_ = now() + kPollSeconds;
    if (!status) return;
    const int64_t here = std::max<int64_t>(1, status->wanted - options_.elsewhere);
    const auto computing = std::ranges::count(status->members, "computing", &cluster::MemberStatus::phase);
    say(coordinator_answered(now(), state_, here, status->step(), status->finished, computing,
                             processes_here(*status)));
  }

  // Finds the workers that hold up a run that makes no progress.
  void watch() {
    if (now() < next_watch_ || state_.over) return;
    next_watch_ = now() + kWatchSeconds;
    std::vector<WatchedWorker> watched;
    for (const WorkerState& worker : state_.workers) {
      const auto facts = process_facts(worker.pid);
      watched.push_back({worker.pid, name_of(worker), facts && facts->stopped, workers_.at(worker.pid).board.read()});
    }
    const Standstill found = look_for_standstill(now(), watchdog_, state_.step, watched, watch_options_);
    say(found.sentence);
    for (const auto& holder : found.to_end) worker_hangs(state_, holder.pid, holder.why);
  }

  // True once the running coordinator has written its address into coordinator.json.
  bool find_coordinator() {
    if (!coordinator_) return false;
    if (client_) return true;
    const auto info = cluster::coordinator_info_now(directory_);
    if (!info || info->pid != coordinator_->pid()) return false;
    client_.emplace(info->url, info->secret, kAnswerSeconds);
    url_ = info->url;
    return true;
  }

  std::optional<int> act(const Action& action) {
    if (action.kind != Action::Kind::finish) say(action.why);
    switch (action.kind) {
      case Action::Kind::start_coordinator:
        if (const auto why = attempt([&] { start_coordinator(); }, state_.begun))
          say(coordinator_not_started(now(), state_, *why));
        break;
      case Action::Kind::start_worker:
        if (const auto why = attempt([&] { start_worker(); }, started_ > 0))
          say(worker_not_started(now(), state_, *why));
        break;
      case Action::Kind::send: send(action.pid, action.signal); break;
      case Action::Kind::request_stop:
        state_.stop_delivered = client_ && client_->control("stop", kResumable, signal_name(state_.stop_signal));
        break;
      case Action::Kind::finish: return finish(action);
    }
    return std::nullopt;
  }

  int finish(const Action& action) {
    say(action.why);
    workers_.clear();
    coordinator_.reset();
    try {
      if (const auto info = cluster::read_coordinator_info(directory_))
        cluster::record_end(directory_, info->pid, action.code);
    } catch (const Error& error) {  // a failing disk must not change the run's exit code
      say(std::string("coordinator.json does not say how the run ended: ") + error.what());
    }
    log_.write("the run is over with exit code " + std::to_string(action.code));
    return action.code;
  }

  // Returns why a process could not be started. Throws if it is the first of its kind: then the user has to correct
  // something. Later, the processes that already run must survive the failure.
  std::optional<std::string> attempt(const std::function<void()>& start, bool later) {
    try {
      start();
    } catch (const Error& error) {
      if (!later) throw;
      return error.what();
    }
    return std::nullopt;
  }

  void start_coordinator() {
    const int64_t workers = state_.wanted + options_.elsewhere;
    ProcessOptions process;
    process.command = {options_.launch.programs.sinew(),
                       "coordinator",
                       directory_,
                       "--workers",
                       std::to_string(workers),
                       "--min",
                       std::to_string(std::min(options_.minimum, workers)),
                       "--listen",
                       options_.listen,
                       "--job",
                       options_.job_name};
    if (options_.tls) process.command.emplace_back("--tls");
    process.death_signal = SIGTERM;
    coordinator_.emplace(process);
    coordinator_started(now(), state_, coordinator_->pid());
    next_poll_ = 0;
  }

  void start_worker() {
    ChildActivityBoard board;
    WorkerStart start =
        worker_start(options_.launch, url_, started_ >= options_.workers, options_.workers_per_machine, board.path());
    Worker worker{std::move(board), std::move(start.task), Process(start.process)};
    const pid_t pid = worker.process.pid();
    workers_.emplace(pid, std::move(worker));
    worker_started(now(), state_, ++started_, pid);
    log_.write("started worker " + std::to_string(started_) + " (pid " + std::to_string(pid) + ")");
  }

  void send(pid_t pid, int signal) {
    if (coordinator_ && coordinator_->pid() == pid) coordinator_->send(signal);
    if (const auto worker = workers_.find(pid); worker != workers_.end()) worker->second.process.send(signal);
  }

  const SupervisorOptions& options_;
  const std::string& directory_;
  Clock& clock_;
  std::optional<rundir::RunLock> lock_;
  RunLog log_;
  Supervision state_;
  Watchdog watchdog_;
  WatchdogOptions watch_options_;
  std::map<pid_t, Worker> workers_;
  std::optional<Process> coordinator_;
  std::optional<cluster::CoordinatorClient> client_;
  std::string url_;         // of the newest coordinator
  std::vector<Lost> lost_;  // dead workers that the coordinator has not heard about yet
  int64_t started_ = 0;
  double next_poll_ = 0, next_watch_ = 0;
  bool checkpoint_requested_ = false;
};

}  // namespace

int supervise(const SupervisorOptions& options, SignalSource& signals, Clock& clock) {
  Supervisor supervisor(options, clock);
  return run_shell(supervisor, signals, kTurnSeconds);
}

}  // namespace sinew::supervise
