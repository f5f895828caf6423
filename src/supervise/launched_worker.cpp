#include "supervise/launched_worker.h"

#include <optional>

#include "base/error.h"
#include "cluster/cluster.h"
#include "supervise/restart_loop.h"

namespace sinew::supervise {
namespace {

constexpr double kLookSeconds = 0.1;
constexpr double kProbeSeconds = 1;

// Returns whether the coordinator answers. coordinator.json alone is not enough: it may be that of an earlier attempt.
bool is_up(const cluster::CoordinatorInfo& info) {
  return !info.exit_code && !info.url.empty() &&
         cluster::CoordinatorClient(info.url, info.secret, kProbeSeconds).status().has_value();
}

int64_t incarnation_of(const std::optional<cluster::CoordinatorInfo>& info) {
  return info ? info->incarnation : -1;
}

// Returns nullopt once the run's coordinator is up. Returns the exit code if the run began and ended meanwhile, or if a
// signal asked this process to stop.
std::optional<int> wait_for_coordinator(const std::string& run_directory, double wait_seconds, SignalSource& signals,
                                        Clock& clock) {
  const int64_t before = incarnation_of(cluster::read_coordinator_info(run_directory));
  const double end = clock.monotonic_seconds() + wait_seconds;
  while (true) {
    if (const int signal = signals.next()) return 128 + signal;
    const auto info = cluster::read_coordinator_info(run_directory);
    if (info && is_up(*info)) return std::nullopt;
    if (info && info->exit_code && info->incarnation != before) return static_cast<int>(*info->exit_code);
    if (clock.monotonic_seconds() >= end) break;
    clock.sleep_seconds(kLookSeconds);
  }
  throw Error("COORDINATOR_NOT_UP",
              "no coordinator came up in " + run_directory + " within " +
                  std::to_string(static_cast<int64_t>(wait_seconds)) + " s",
              "look at what rank 0 printed: it starts the coordinator; all machines must see the same --run-dir, and "
              "reach the address it listens on (--listen); --wait 10m waits longer");
}

}  // namespace

int join_launched(const WorkerLaunch& launch, int64_t workers_per_machine, double wait_seconds, SignalSource& signals,
                  Clock& clock, const std::function<void(const std::string&)>& say) {
  if (const auto code = wait_for_coordinator(launch.run_directory, wait_seconds, signals, clock)) return *code;
  const auto make = [&](bool later) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    return worker_start(launch, info ? info->url : "", later, workers_per_machine);
  };
  return restart_loop(launch.run_directory, make, signals, clock, say);
}

}  // namespace sinew::supervise
