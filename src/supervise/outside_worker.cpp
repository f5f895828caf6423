#include "supervise/outside_worker.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "base/disk.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/write_fence.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"
#include "supervise/first_decision.h"

namespace sinew::supervise {
namespace {

std::string read_secret(const std::string& path) {
  std::string text(1024, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty())
    throw UsageError("SECRET_EMPTY", path + " holds no secret",
                     "write a join token into it: sinew token create RUN, on the machine of the coordinator");
  return text;
}

// Returns the run's directory. A run that has just been started may have no resolved.yaml yet.
std::string directory_of(const OutsideWorker& worker) {
  std::error_code unknown;
  const bool path = std::filesystem::is_directory(worker.where, unknown);
  return path ? worker.where : rundir::find_run(worker.root, worker.where);
}

// Throws Error if no worker can ever join the run in this directory, because the run has no coordinator.
void check_group(const std::string& directory) {
  const bool alone =
      rundir::is_run(directory) && !system_disk().exists(rundir::file_in(directory, rundir::kCoordinatorFile));
  if (alone) cluster::running_coordinator("", directory);  // throws: it has no coordinator
}

constexpr double kDecisionAnswerSeconds = 2, kDecisionLookSeconds = 0.5;

}  // namespace

WorkerLaunch launch_of(const OutsideWorker& worker) {
  WorkerLaunch launch;
  launch.programs = worker.programs;
  launch.hang_seconds = worker.hang_seconds;
  if (worker.by_url()) {
    launch.job = worker.more[0];
    launch.run_directory = worker.more[1];
    launch.overrides = {worker.more.begin() + 2, worker.more.end()};
    cluster::CoordinatorInfo info;
    info.url = worker.where;
    info.secret = read_secret(worker.secret_file);  // throws before anything in the directory changes
    system_disk().make_directories(launch.run_directory);
    // Writers that another coordinator has numbered say nothing about the ids that this one gives.
    system_disk().remove_all(rundir::file_in(launch.run_directory, WriteFence::kDirectory));
    cluster::write_coordinator_info(launch.run_directory, info);
  } else {
    launch.run_directory = directory_of(worker);
    check_group(launch.run_directory);
    launch.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
    launch.resume = true;
    launch.ledger = system_disk().exists(rundir::file_in(launch.run_directory, rundir::kLedgerFile));
  }
  return launch;
}

std::vector<std::string> decisions_in(const std::string& facts, const spec::Job& job) {
  const auto json = nlohmann::json::parse(facts, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("precision") || !json.contains("memory_format")) return {};
  return decided_options(job, json["precision"].is_string() ? json["precision"].get<std::string>() : "",
                         json["memory_format"].is_string() ? json["memory_format"].get<std::string>() : "");
}

std::optional<int> take_decisions(WorkerLaunch& launch, const spec::Job& job, double wait_seconds,
                                  SignalSource& signals, Clock& clock) {
  if (!spec::wants_fastest(job)) return std::nullopt;
  const double end = clock.monotonic_seconds() + wait_seconds;
  while (true) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    const auto status =
        info ? cluster::CoordinatorClient(info->url, info->secret, kDecisionAnswerSeconds).status() : std::nullopt;
    const std::vector<std::string> decided = status ? decisions_in(status->facts, job) : std::vector<std::string>();
    if (!decided.empty()) {
      take_decided(launch.overrides, decided);
      return std::nullopt;
    }
    if (const int signal = signals.next()) return 128 + signal;
    if (clock.monotonic_seconds() >= end) break;
    clock.sleep_seconds(kDecisionLookSeconds);
  }
  throw Error(
      "FASTEST_UNDECIDED",
      "the job leaves to the group which precision is the fastest, and the group's leader did not say it within " +
          std::to_string(static_cast<int64_t>(wait_seconds)) + " s",
      "wait until the run has made steps; or give trainer.precision and trainer.memory_format as its "
      "resolved.yaml does");
}

bool is_over(const std::string& directory, const std::function<void(const std::string&)>& say) {
  const auto info = cluster::coordinator_info_now(directory);
  if (!info || !info->exit_code) return false;
  if (*info->exit_code != kDone && *info->exit_code != kBudget) cluster::running_coordinator("", directory);  // throws
  say("the run in " + directory + " is over; it ended with exit code " + std::to_string(*info->exit_code));
  return true;
}

}  // namespace sinew::supervise
