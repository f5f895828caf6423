// `sinew ps` shows the members of a run that is training, and the last decisions about them.
#include <cstdio>

#include "base/disk.h"
#include "base/process.h"
#include "cli/command_job.h"
#include "cli/options.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"

namespace sinew::cli {
int run_ps(const Arguments& arguments) {
  std::string run = "last", root = "runs";
  bool json = false;
  Options options("ps", "The workers of a run that trains, or the processes of a command");
  options
      .about(
          "For a run with several workers: what each computes, how fast, and the last decisions. For a run of a "
          "command: "
          "its attempts and its processes.")
      .optional_argument("RUN", run, "a run directory, the end of a run's id, or last (the default)")
      .flag("--json", json, "print the coordinator's whole answer")
      .text("--root", "DIR", root, "where runs are found by name");
  if (!options.parse(arguments)) return kDone;
  // A group that waits for its first workers is not a run yet: its directory has a coordinator.json, but no
  // resolved.yaml.
  const std::string directory =
      system_disk().exists(rundir::file_in(run, rundir::kCoordinatorFile)) ? run : rundir::find_run(root, run);
  if (const std::string status = command_status(directory, json); !status.empty()) {
    print_text(stdout, status);
    return kDone;
  }
  const cluster::CoordinatorInfo info = cluster::running_coordinator(root, directory);
  cluster::check_coordinator_address(info, own_variable("SINEW_COORDINATORS"));
  const std::string answer = cluster::fetch_status(info, directory);
  const std::string text = json ? answer + "\n" : cluster::status_text(directory, cluster::status_of_json(answer));
  json ? void(std::fputs(text.c_str(), stdout)) : print_text(stdout, text);
  return kDone;
}

}  // namespace sinew::cli
