// `sinew join` adds a worker of this machine to a run, and restarts it until the run is over.
#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "http/http.h"
#include "supervise/supervise.h"

namespace sinew::cli {
namespace {

void print_event(const std::string& sentence) {
  std::fprintf(stderr, "sinew join: %s\n", sentence.c_str());
}

}  // namespace

int run_join(const Arguments& arguments) {
  supervise::OutsideWorker given;
  bool insecure = false;
  double wait_seconds = 300;
  supervise::SandboxChoice sandbox;
  Options options("join", "Adds a worker of this machine to a run that trains elsewhere");
  options
      .about(
          "'sinew train --workers N --listen ADDRESS' supervises the run. join restarts its worker until the run is "
          "over. Started N times by srun, torchrun or mpirun, it is N workers that share the cores of their machine.")
      .argument("RUN|URL", given.where,
                "the run's directory, if both machines see it; else the URL of its coordinator, by coordinator.json")
      .rest("JOB RUN_DIR [key=value ...]", given.more,
            "with a URL: the job file and the overrides of the run, and a directory of this machine")
      .text("--secret-file", "FILE", given.secret_file,
            "with a URL: a file with a join token (sinew token create), or with the run's secret")
      .flag("--insecure", insecure, "accept an http:// URL of another machine: others on the network read the secret")
      .text("--root", "DIR", given.root, "where RUN is found by name")
      .duration("--hang-after", given.hang_seconds, "as the run was started with")
      .duration("--wait", wait_seconds, "with a run's directory: how long to wait until the run has begun");
  add_sandbox(options, sandbox, true)
      .notes(
          "With an https:// URL the worker trusts only the run's coordinator, and sends the token to nobody else. When "
          "the token has expired or was revoked, the worker leaves, and join ends with exit code 2.\n"
          "First Ctrl-C: the worker hands over its work and leaves (exit code 75). Second: it is killed.")
      .example("sinew join /shared/runs/cifar/20251121T040000Z-ab12");
  if (!options.parse(arguments)) return kDone;
  if (given.by_url() && (given.secret_file.empty() || given.more.size() < 2))
    options.refuse("with a URL, join needs --secret-file, JOB and RUN_DIR");
  if (given.where.starts_with("http://") && !insecure && !http::is_loopback(http::host_of(given.where)))
    options.refuse("without TLS others on the network can read the secret that join sends to " + given.where,
                   "use the https:// URL of coordinator.json, or --insecure if something else protects the network");
  if (!given.by_url() && !(given.secret_file.empty() && given.more.empty()))
    options.refuse("with a run's directory, join needs nothing else");
  std::optional<spec::Job> job;
  if (given.by_url() && !(job = load_training(given.more[0], {given.more.begin() + 2, given.more.end()}, "sinew join")))
    return kUsage;
  const auto launched = supervise::launch_of(own_environment());
  given.programs = programs();
  supervise::WorkerLaunch launch = launch_of(given);
  const int64_t sharers = supervise::sharers_here(launched);
  const auto make = [&](bool) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    return supervise::worker_start(launch, info ? info->url : "", false, sharers);
  };
  ignore_checkpoint_requests();
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  if (!given.by_url()) {
    if (supervise::is_over(launch.run_directory, print_event)) return kDone;
    const auto code = supervise::wait_for_run(launch.run_directory, wait_seconds, signals, system_clock(), print_event);
    if (code) return *code;
  }
  if (!job && !(job = load_training(launch.job, {}, "sinew join"))) return kUsage;
  if (const auto code = supervise::take_decisions(launch, *job, wait_seconds, signals, system_clock())) return *code;
  const auto sources = supervise::sources_of(*job, launch.job, launch.run_directory);
  const std::string url = given.by_url() ? given.where : "";
  const supervise::SandboxNeeds needs{
      .sources = sources, .writable = launch.run_directory, .links = true, .coordinator_url = url, .workers = sharers};
  launch.sandbox = supervise::sandbox_of(sandbox, needs, print_event);
  launch = supervise::with_fixed_address(launch);
  return supervise::restart_loop(launch.run_directory, make, signals, system_clock(), print_event);
}

}  // namespace sinew::cli
