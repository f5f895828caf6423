// `sinew join` adds a worker of this machine to a run, and restarts it until the run is over.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "http/http.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

void print_event(const std::string& sentence) {
  std::fprintf(stderr, "sinew join: %s\n", sentence.c_str());
}

struct Given {
  std::string where, secret_file, root = "runs";
  std::vector<std::string> more;  // with a URL: JOB, RUN_DIR and overrides
  bool insecure = false;
  double hang_seconds = supervise::WorkerLaunch().hang_seconds, wait_seconds = 300;
  bool by_url() const { return where.starts_with("http://") || where.starts_with("https://"); }
};

std::string read_secret(const std::string& path) {
  std::string text(1024, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty())
    throw UsageError("SECRET_EMPTY", path + " holds no secret", "write the secret of coordinator.json into it");
  return text;
}

// The run's directory. It may have no resolved.yaml yet, if the run has just been started.
std::string directory_of(const Given& given) {
  std::error_code unknown;
  const bool path = std::filesystem::is_directory(given.where, unknown);
  return path ? given.where : rundir::find_run(given.root, given.where);
}

// Throws Error if no worker can ever join the run in this directory.
void check_group(const std::string& directory) {
  const bool alone =
      rundir::is_run(directory) && !system_disk().exists(rundir::file_in(directory, rundir::kCoordinatorFile));
  if (alone) cluster::running_coordinator("", directory);  // throws: it has no coordinator
}

// With a URL, writes the coordinator's address and secret to coordinator.json in this machine's own run directory.
supervise::WorkerLaunch launch_of(const Given& given) {
  supervise::WorkerLaunch launch;
  launch.programs = programs();
  launch.hang_seconds = given.hang_seconds;
  if (given.by_url()) {
    launch.job = given.more[0];
    launch.run_directory = given.more[1];
    launch.overrides = {given.more.begin() + 2, given.more.end()};
    system_disk().make_directories(launch.run_directory);
    cluster::CoordinatorInfo info;
    info.url = given.where;
    info.secret = read_secret(given.secret_file);
    cluster::write_coordinator_info(launch.run_directory, info);
  } else {
    launch.run_directory = directory_of(given);
    check_group(launch.run_directory);
    launch.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
    launch.resume = true;
  }
  return launch;
}

// Says so if the run is over. A run that was stopped or has failed can be resumed, so nothing waits for it here: that
// is an Error.
bool is_over(const std::string& directory) {
  const auto info = cluster::coordinator_info_now(directory);
  if (!info || !info->exit_code) return false;
  if (*info->exit_code != kDone && *info->exit_code != kBudget) cluster::running_coordinator("", directory);  // throws
  print_event("the run in " + directory + " is over; it ended with exit code " + std::to_string(*info->exit_code));
  return true;
}

}  // namespace

int run_join(const Arguments& arguments) {
  Given given;
  Options options("join", "Adds a worker of this machine to a run that trains elsewhere");
  options
      .about(
          "'sinew train --workers N --listen ADDRESS' supervises the run. join restarts its worker until the run is "
          "over. "
          "Started N times by srun, torchrun or mpirun, it is N workers that share the cores of their machine.")
      .argument("RUN|URL", given.where,
                "the run's directory, if both machines see it; else the URL of its coordinator, by coordinator.json")
      .rest("JOB RUN_DIR [key=value ...]", given.more,
            "with a URL: the job file and the overrides of the run, and a directory of this machine")
      .text("--secret-file", "FILE", given.secret_file, "with a URL: a file with the secret of coordinator.json")
      .flag("--insecure", given.insecure,
            "accept an http:// URL of another machine: others on the network read the secret")
      .text("--root", "DIR", given.root, "where RUN is found by name")
      .duration("--hang-after", given.hang_seconds, "as the run was started with")
      .duration("--wait", given.wait_seconds, "with a run's directory: how long to wait until the run has begun")
      .notes(
          "With an https:// URL each side trusts only the other's secret.\n"
          "First Ctrl-C: the worker hands over its work and leaves (exit code 75). Second: it is killed.")
      .example("sinew join /shared/runs/cifar/20251121T040000Z-ab12");
  if (!options.parse(arguments)) return kDone;
  if (given.by_url() && (given.secret_file.empty() || given.more.size() < 2))
    options.refuse("with a URL, join needs --secret-file, JOB and RUN_DIR");
  if (given.where.starts_with("http://") && !given.insecure && !http::is_loopback(http::host_of(given.where)))
    options.refuse("without TLS others on the network can read the secret that join sends to " + given.where,
                   "use the https:// URL of coordinator.json, or --insecure if something else protects the network");
  if (!given.by_url() && !(given.secret_file.empty() && given.more.empty()))
    options.refuse("with a run's directory, join needs nothing else");
  if (given.by_url() && !load_training(given.more[0], {given.more.begin() + 2, given.more.end()}, "sinew join"))
    return kUsage;
  const auto launched = supervise::launch_of(own_environment());
  const supervise::WorkerLaunch launch = launch_of(given);
  const int64_t sharers = supervise::sharers_here(launched);
  const auto make = [&](bool) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    return supervise::worker_start(launch, info ? info->url : "", false, sharers);
  };
  ignore_checkpoint_requests();
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  if (!given.by_url()) {
    if (is_over(launch.run_directory)) return kDone;
    const auto code =
        supervise::wait_for_run(launch.run_directory, given.wait_seconds, signals, system_clock(), print_event);
    if (code) return *code;
  }
  return supervise::restart_loop(launch.run_directory, make, signals, system_clock(), print_event);
}

}  // namespace sinew::cli
