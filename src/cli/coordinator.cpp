// Implements `sinew coordinator RUN_DIR`, the process that the members of a run talk to. `sinew train --workers N`
// starts it, and replaces it if it dies: the members can restore its state.
#include <csignal>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "supervise/supervise.h"

namespace sinew::cli {
namespace {

// Splits "address:port". For an address alone, the system chooses the port.
void split_listen(cluster::RunCoordinatorOptions& run) {
  const size_t colon = run.listen.rfind(':');
  if (colon == std::string::npos || run.listen.find(':') != colon) return;
  run.port = static_cast<uint16_t>(whole_number("the port of --listen", run.listen.substr(colon + 1), 0, 65535));
  run.listen.resize(colon);
}

}  // namespace

int run_coordinator(const Arguments& arguments) {
  cluster::RunCoordinatorOptions run;
  bool insecure = false;
  Options options("coordinator", "Runs the coordinator of a run, for members that something else starts");
  options
      .about(
          "'sinew train --workers N' starts one by itself. The coordinator decides who is in the run and who computes "
          "what. It ends with the run, with the run's exit code.")
      .argument("RUN_DIR", run.run_directory, "the run's directory")
      .integer("--workers", "N", run.workers, 1, cluster::kMostWorkers, "workers that the run should have")
      .integer("--min", "N", run.minimum, 1, cluster::kMostWorkers, "workers that it needs to begin")
      .integer("--most", "N", run.most, 1, cluster::kMostWorkers, "the most workers that 'sinew scale' may ask for")
      .text("--listen", "ADDRESS", run.listen, "where members reach it; address:port for a fixed port")
      .text("--job", "NAME", run.job, "the job's name, shown by its status")
      .flag("--tls", run.tls,
            "HTTPS, trusted by everyone who has the secret or a join token; the members' links use TLS, too; on an "
            "address that other machines reach this is the default")
      .flag("--insecure", insecure, "no TLS on such an address")
      .notes(
          "Writes RUN_DIR/coordinator.json (its address and the secret, readable by its owner alone) and "
          "RUN_DIR/coordinator.log (its decisions and their reasons).");
  if (!options.parse(arguments)) return kDone;
  if (!options.given("--workers")) options.refuse("coordinator needs --workers N");
  split_listen(run);
  run.tls |= !insecure && supervise::is_exposed(run.listen);
  ignore_checkpoint_requests();
  Signals stop({SIGINT, SIGTERM, SIGHUP});  // this comes before any thread starts, so that no thread receives a signal
  if (!system_disk().exists(run.run_directory))
    throw UsageError("FILE_NOT_FOUND", "there is no " + run.run_directory, "create it, or check the path");
  cluster::RunLog log(run.run_directory, "coordinator", system_clock());
  run.log = [&log](const std::string& line) { log.write(line); };
  return cluster::run_coordinator(run, stop, system_clock());
}

}  // namespace sinew::cli
