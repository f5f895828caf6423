#include "supervise/launched_worker.h"

#include <optional>

#include "base/error.h"
#include "base/exit_code.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"
#include "supervise/restart_loop.h"

namespace sinew::supervise {
namespace {

constexpr double kLookSeconds = 0.1;
constexpr double kProbeSeconds = 1;

// Returns whether the coordinator answers. The file coordinator.json is not enough: an earlier attempt may have left
// it.
bool is_up(const cluster::CoordinatorInfo& info) {
  return !info.exit_code && !info.url.empty() &&
         cluster::CoordinatorClient(info.url, info.secret, kProbeSeconds).status().has_value();
}

int64_t incarnation_of(const std::optional<cluster::CoordinatorInfo>& info) {
  return info ? info->incarnation : -1;
}

// Waits until `ready` accepts the run's coordinator, and returns nullopt. Returns the exit code if the run began and
// ended meanwhile, or if a signal asked this process to stop. Treats a coordinator.json that cannot be read as missing:
// another process may be writing the file, or may be about to replace a damaged one.
std::optional<int> wait_for_coordinator(const std::string& run_directory, double wait_seconds, SignalSource& signals,
                                        Clock& clock, const std::function<bool(const cluster::CoordinatorInfo&)>& ready,
                                        const std::function<void()>& on_wait) {
  const int64_t before = incarnation_of(cluster::coordinator_info_now(run_directory));
  const double end = clock.monotonic_seconds() + wait_seconds;
  for (bool first = true;; first = false) {
    if (const int signal = signals.next()) return 128 + signal;
    const auto info = cluster::coordinator_info_now(run_directory);
    if (info && ready(*info)) return std::nullopt;
    if (info && info->exit_code && info->incarnation != before) return static_cast<int>(*info->exit_code);
    if (clock.monotonic_seconds() >= end) break;
    if (first) on_wait();
    clock.sleep_seconds(kLookSeconds);
  }
  throw Error("COORDINATOR_NOT_UP",
              "no coordinator came up in " + run_directory + " within " +
                  std::to_string(static_cast<int64_t>(wait_seconds)) + " s",
              "look at what rank 0 printed: it starts the coordinator; all machines must see the same --run-dir, and "
              "reach the address it listens on (--listen); --wait 10m waits longer");
}

// Returns the exit code of the run if it was over before this rank came. If `resumes` is set, the launcher starts all
// ranks to resume the run. Rank 0 then resumes a run that was stopped or has failed, and starts a coordinator.
std::optional<int> over_before(const std::string& run_directory, bool resumes) {
  const auto info = cluster::coordinator_info_now(run_directory);
  if (!info || !info->exit_code) return std::nullopt;
  const bool done = *info->exit_code == kDone || *info->exit_code == kBudget;
  // Without --resume, rank 0 refuses a directory that holds a run. A run in the directory therefore belongs to this
  // launch.
  const bool over = rundir::is_run(run_directory) && (done || !resumes);
  return over ? std::optional(static_cast<int>(*info->exit_code)) : std::nullopt;
}

}  // namespace

std::optional<int> wait_for_run(const std::string& run_directory, double wait_seconds, SignalSource& signals,
                                Clock& clock, const std::function<void(const std::string&)>& say) {
  const auto ready = [&](const cluster::CoordinatorInfo& info) { return rundir::is_run(run_directory) && is_up(info); };
  return wait_for_coordinator(run_directory, wait_seconds, signals, clock, ready,
                              [&] { say("waiting until the run in " + run_directory + " has begun"); });
}

int join_launched(const WorkerLaunch& launch, int64_t workers_per_machine, double wait_seconds, SignalSource& signals,
                  Clock& clock, const std::function<void(const std::string&)>& say) {
  if (const auto code = over_before(launch.run_directory, launch.resume)) {
    say("the run in " + launch.run_directory + " is over; it ended with exit code " + std::to_string(*code));
    return *code;
  }
  if (const auto code = wait_for_coordinator(launch.run_directory, wait_seconds, signals, clock, is_up, [] {}))
    return *code;
  const WorkerLaunch fixed = with_fixed_address(launch);
  const auto make = [&](bool later) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    return worker_start(fixed, info ? info->url : "", later, workers_per_machine);
  };
  return restart_loop(launch.run_directory, make, signals, clock, say);
}

}  // namespace sinew::supervise
