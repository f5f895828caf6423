#include "supervise/worker_start.h"

#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/disk.h"
#include "base/exit_code.h"
#include "base/shell_loop.h"
#include "cluster/cluster.h"
#include "http/http.h"
#include "rundir/rundir.h"
#include "supervise/supervision.h"

namespace sinew::supervise {
namespace {

constexpr double kWorkerTurnSeconds = 0.05;
constexpr double kOverSeconds = 1;  // seconds between two checks whether the run is over

// Returns the run's exit code, once its supervisor has written it into coordinator.json. If the file cannot be read
// now, the next check reads it again.
std::optional<int> exit_code_of(const std::string& run_directory) {
  const auto info = cluster::coordinator_info_now(run_directory);
  if (!info || !info->exit_code) return std::nullopt;
  return static_cast<int>(*info->exit_code);
}

class RestartLoop final : public Shell {
 public:
  RestartLoop(const std::string& run_directory, const std::function<WorkerStart(bool)>& make, Clock& clock,
              const std::function<void(const std::string&)>& say)
      : run_directory_(run_directory), make_(make), clock_(clock), say_(say) {}

  void on_signal(int signal) override {
    stop_.add(signal);
    if (!worker_) return;
    if (!std::exchange(asked_, true)) worker_->send(SIGTERM);
    if (stop_.immediate()) worker_->send(SIGKILL);
  }

  std::optional<int> turn() override {
    const double now = clock_.monotonic_seconds();
    if (!worker_ && now >= next_start_) start(now);
    if (!worker_) return std::nullopt;
    if (const auto end = worker_->wait()) return ended(*end, now);
    if (now < next_look_) return std::nullopt;
    next_look_ = now + kOverSeconds;
    if (!over_since_ && exit_code_of(run_directory_)) over_since_ = now;
    if (over_since_ && now - *over_since_ >= limits_.end_seconds) worker_->send(SIGKILL);
    return std::nullopt;
  }

  std::vector<int> descriptors() const override {
    return worker_ ? std::vector<int>{worker_->descriptor()} : std::vector<int>{};
  }

 private:
  void start(double now) {
    start_.emplace(make_(std::exchange(later_, true)));
    worker_.emplace(start_->process);
    began_ = now;
    asked_ = false;
    over_since_.reset();
    next_look_ = now;
  }

  std::optional<int> ended(const ProcessEnd& end, double now) {
    worker_.reset();
    if (stop_.immediate()) return 128 + stop_.signal();
    if (end.signal == 0 && end.code != kRejoin) return end.code;
    if (stop_.requested()) return kResumable;
    if (const auto code = exit_code_of(run_directory_)) return *code;
    const bool young = now - began_ < limits_.young_seconds;
    failures_ = young ? failures_ + 1 : 0;
    const bool gives_up = failures_ >= limits_.most_failures;
    say_("the worker " + to_string(end) + (gives_up ? " again and again" : "; it is started again"));
    if (gives_up) return kTrainingError;
    next_start_ = young ? now + limits_.first_delay : now;
    return std::nullopt;
  }

  const std::string& run_directory_;
  const std::function<WorkerStart(bool)>& make_;
  Clock& clock_;
  const std::function<void(const std::string&)>& say_;
  const SupervisionOptions limits_;
  StopRequests stop_;
  std::optional<WorkerStart> start_;
  std::optional<Process> worker_;
  bool later_ = false, asked_ = false;
  int64_t failures_ = 0;
  double began_ = 0, next_start_ = 0, next_look_ = 0;
  // when the end of the run was noticed; a worker that does not notice the end is killed later
  std::optional<double> over_since_;
};

}  // namespace

WorkerStart worker_start(const WorkerLaunch& launch, const std::string& coordinator_url, bool later,
                         int64_t workers_per_machine, const std::string& activity_board) {
  const bool resolved = later && rundir::is_run(launch.run_directory);
  task::Train train;
  train.job = resolved ? rundir::file_in(launch.run_directory, rundir::kResolvedFile) : launch.job;
  if (!resolved) train.overrides = launch.overrides;
  train.run_directory = launch.run_directory;
  train.resume = launch.resume || later;
  train.ledger = launch.ledger;
  train.json_log = launch.json_log;
  train.activity_board = activity_board;
  task::Group& group = train.group.emplace();
  group.coordinator_file = rundir::file_in(launch.run_directory, rundir::kCoordinatorFile);
  group.link_listen = launch.link_listen.empty() ? http::address_towards(coordinator_url) : launch.link_listen;
  group.link_advertise = launch.link_advertise;
  group.hang_seconds = launch.hang_seconds;
  group.local_workers = workers_per_machine;
  WorkerStart start{task::TaskFile(train), {}};
  // The worker reads the task. The run directory is an argument only for users who list processes.
  start.process.command = {launch.programs.worker, start.task.path(), launch.run_directory};
  // With this setting, MKL chooses the same kernels for the same shapes. It reads the variable when the worker's
  // libraries load.
  if (std::getenv("MKL_CBWR") == nullptr) start.process.environment["MKL_CBWR"] = "AUTO";
  start.process.death_signal = SIGKILL;  // the worker ends with the supervisor; the newest checkpoint remains valid
  return start;
}

int restart_loop(const std::string& run_directory, const std::function<WorkerStart(bool later)>& make,
                 SignalSource& signals, Clock& clock, const std::function<void(const std::string&)>& say) {
  RestartLoop loop(run_directory, make, clock, say);
  return run_shell(loop, signals, kWorkerTurnSeconds);
}

}  // namespace sinew::supervise
