#include "supervise/worker_start.h"

#include <csignal>
#include <cstdlib>

#include "cluster/cluster.h"
#include "http/http.h"
#include "rundir/rundir.h"

namespace sinew::supervise {

WorkerLaunch with_fixed_address(WorkerLaunch launch) {
  const auto info = cluster::coordinator_info_now(launch.run_directory);
  if (launch.sandbox && launch.link_listen.empty() && info) launch.link_listen = http::address_towards(info->url);
  return launch;
}

namespace {

task::Train train_task(const WorkerLaunch& launch) {
  task::Train train;
  train.job = launch.job;
  train.job_text = launch.job_text;
  train.overrides = launch.overrides;
  train.run_directory = launch.run_directory;
  train.resume = launch.resume;
  train.ledger = launch.ledger;
  train.json_log = launch.json_log;
  train.sandbox = launch.sandbox;
  return train;
}

WorkerStart start_of(const WorkerLaunch& launch, const task::Train& train) {
  WorkerStart start{task::TaskFile(train), {}};
  // The worker reads the task only. The run directory is an argument for users who list processes.
  start.process.command = {launch.programs.worker, start.task.path(), launch.run_directory};
  // With this setting, MKL chooses the same kernels for the same shapes. It reads the variable when the worker's
  // libraries load.
  if (std::getenv("MKL_CBWR") == nullptr) start.process.environment["MKL_CBWR"] = "AUTO";
  start.process.death_signal = SIGKILL;  // a member of the group may switch this off (task::Group::outlives_parent)
  return start;
}

}  // namespace

WorkerStart worker_start(const WorkerLaunch& launch, const std::string& coordinator_url, bool later,
                         int64_t workers_per_machine, const std::string& activity_board, Parent parent) {
  task::Train train = train_task(launch);
  if (later && rundir::is_run(launch.run_directory)) {
    train.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
    train.job_text.clear();
    train.overrides.clear();
  }
  train.resume = launch.resume || later;
  train.activity_board = activity_board;
  task::Group& group = train.group.emplace();
  group.coordinator_file = rundir::file_in(launch.run_directory, rundir::kCoordinatorFile);
  group.link_listen = launch.link_listen.empty() ? http::address_towards(coordinator_url) : launch.link_listen;
  group.link_advertise = launch.link_advertise;
  group.hang_seconds = launch.hang_seconds;
  group.local_workers = workers_per_machine;
  group.outlives_parent = parent == Parent::supervisor;
  return start_of(launch, train);
}

WorkerStart decision_start(const WorkerLaunch& launch) {
  task::Train train = train_task(launch);
  train.decide = true;
  return start_of(launch, train);
}

}  // namespace sinew::supervise
