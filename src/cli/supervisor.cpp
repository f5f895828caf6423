#include "cli/supervisor.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>

#include "base/disk.h"
#include "base/error.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/activity_board.h"
#include "checkpoint/checkpoint.h"
#include "cli/group_file.h"
#include "cli/group_line.h"
#include "cli/group_log.h"
#include "cli/supervision.h"
#include "cli/watchdog.h"
#include "cli/worker_process.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr double kPollSeconds = 0.2;      // between two questions to the coordinator
constexpr double kLoopSeconds = 0.05;     // the longest sleep
constexpr double kAnswerSeconds = 1;      // for an answer; a coordinator that is well needs a millisecond
constexpr double kLostIsNewsSeconds = 5;  // later the group knows by itself
constexpr double kWatchSeconds = 0.5;     // between two looks at what the workers do

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, Clock& clock)
      : options_(options),
        directory_(options.work.run_directory),
        clock_(clock),
        log_(directory_, "supervisor", clock) {
    state_.wanted = options.workers;
    auto lock = rundir::RunLock::take(directory_);
    if (!lock) throw Error(lock.error(), "sinew ps " + directory_ + " shows its workers");
    lock_ = std::move(*lock);
    system_disk().remove_file(view_file_path(directory_));  // of an attempt whose members are all gone
    watch_options_.least_seconds = options.hang_seconds;
  }

  int run() {
    while (true) {
      take_signals();
      reap();
      talk();
      watch();
      for (const Action& action : next_actions(now(), state_)) {
        if (const auto code = act(action)) return *code;
      }
      wait();
    }
  }

 private:
  struct Worker {
    Process process;
    ChildActivityBoard board;
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
    std::fprintf(stderr, "sinew: %s\n", sentence.c_str());
  }

  void take_signals() {
    while (const int signal = signals_.next()) {
      if (signal == SIGUSR1) {
        checkpoint_asked_ = true;
        continue;
      }
      const bool first = !state_.stop_since;
      stop_asked(now(), state_, signal);
      if (first) say("stopping after this step; once more stops at once");
    }
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
      const auto file = group_file_now(directory_);
      const bool its_own = file && file->pid == coordinator_->pid();
      coordinator_.reset();
      line_.reset();
      say(coordinator_ended(now(), state_, *end, its_own ? file->over : std::nullopt));
    }
  }

  static ProcessesHere processes_here(const GroupStatus& status) {
    ProcessesHere here = processes_on(host_name(), status);
    std::erase_if(here.computing, [](pid_t pid) {  // the coordinator knows of one that was stopped only a second later
      const auto facts = process_facts(pid);
      return !facts || facts->stopped;
    });
    return here;
  }

  // All that is said to the coordinator and heard from it. What fails is tried again at the next poll.
  void talk() {
    if (!find_line()) return;
    const bool poll = now() >= next_poll_;
    std::erase_if(lost_, [&](Lost& lost) {
      const bool now_or_never = poll || !lost.tried;
      lost.tried = true;
      return now() - lost.since > kLostIsNewsSeconds || (now_or_never && line_->lost(lost.pid, lost.why));
    });
    if (!poll) return;
    if (checkpoint_asked_ && line_->control("checkpoint", 0, "SIGUSR1")) checkpoint_asked_ = false;
    const auto status = line_->status();
    next_poll_ = now() + kPollSeconds;
    if (!status) return;
    const int64_t here = std::max<int64_t>(1, status->wanted - options_.elsewhere);
    const auto computing = std::ranges::count(status->members, "computing", &GroupMember::phase);
    say(coordinator_told(now(), state_, here, status->step, status->finished, computing, processes_here(*status)));
  }

  // Who holds up a run that does not advance.
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

  // Where the coordinator is, once it has written that down.
  bool find_line() {
    if (!coordinator_) return false;
    if (line_) return true;
    const auto file = group_file_now(directory_);
    if (!file || file->pid != coordinator_->pid()) return false;
    line_.emplace(file->url, file->secret, kAnswerSeconds);
    url_ = file->url;
    return true;
  }

  std::optional<int> act(const Action& action) {
    if (action.kind != Action::Kind::finish) say(action.why);
    switch (action.kind) {
      case Action::Kind::start_coordinator:
        if (const auto why = start([&] { start_coordinator(); }, state_.begun))
          say(coordinator_not_started(now(), state_, *why));
        break;
      case Action::Kind::start_worker:
        if (const auto why = start([&] { start_worker(); }, started_ > 0)) say(worker_not_started(now(), state_, *why));
        break;
      case Action::Kind::send: send(action.pid, action.signal); break;
      case Action::Kind::tell_stop:
        state_.stop_told = line_ && line_->control("stop", 75, signal_name(state_.stop_signal));
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
      if (const auto file = read_group_file(directory_)) note_end(directory_, file->pid, action.code);
    } catch (const Error& trouble) {  // the run ended as it did, whatever its disk says
      say(std::string("how the run ended could not be noted: ") + trouble.what());
    }
    log_.write("the run is over with exit code " + std::to_string(action.code));
    return action.code;
  }

  // Why it could not be started. The first of all must: what is wrong with it is the user's to mend. Later the others
  // must not die of it.
  std::optional<std::string> start(const std::function<void()>& begin, bool later) {
    try {
      begin();
    } catch (const Error& error) {
      if (!later) throw;
      return error.what();
    }
    return std::nullopt;
  }

  void start_coordinator() {
    const int64_t workers = state_.wanted + options_.elsewhere;
    ProcessOptions process;
    process.command = {this_program(),
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
    ProcessOptions process = group_worker(options_.work, url_, started_ >= options_.workers, options_.sharers);
    process.environment["SINEW_ACTIVITY_BOARD"] = board.path();
    Worker worker{Process(process), std::move(board)};
    const pid_t pid = worker.process.pid();
    workers_.emplace(pid, std::move(worker));
    worker_started(now(), state_, ++started_, pid);
    log_.write("started worker " + std::to_string(started_) + " (pid " + std::to_string(pid) + ")");
  }

  void send(pid_t pid, int signal) {
    if (coordinator_ && coordinator_->pid() == pid) coordinator_->send(signal);
    if (const auto worker = workers_.find(pid); worker != workers_.end()) worker->second.process.send(signal);
  }

  // Until something ends, a signal comes, or a little time has passed.
  void wait() {
    std::vector<pollfd> all = {{signals_.descriptor(), POLLIN, 0}};
    for (const auto& [pid, worker] : workers_) all.push_back({worker.process.descriptor(), POLLIN, 0});
    if (coordinator_) all.push_back({coordinator_->descriptor(), POLLIN, 0});
    ::poll(all.data(), all.size(), static_cast<int>(kLoopSeconds * 1000));
  }

  const SupervisorOptions& options_;
  const std::string& directory_;
  Clock& clock_;
  std::optional<rundir::RunLock> lock_;
  Signals signals_{SIGINT, SIGTERM, SIGHUP, SIGUSR1};  // before anything that may start a thread
  GroupLog log_;
  Supervision state_;
  Watchdog watchdog_;
  WatchdogOptions watch_options_;
  std::map<pid_t, Worker> workers_;
  std::optional<Process> coordinator_;
  std::optional<GroupLine> line_;
  std::string url_;         // of the newest coordinator
  std::vector<Lost> lost_;  // dead workers the coordinator does not know of yet
  int64_t started_ = 0;
  double next_poll_ = 0, next_watch_ = 0;
  bool checkpoint_asked_ = false;
};

}  // namespace

int supervise(const SupervisorOptions& options, Clock& clock) {
  return Supervisor(options, clock).run();
}

}  // namespace sinew::cli
