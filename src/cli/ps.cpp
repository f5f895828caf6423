// `sinew ps`: who is in a run that trains, and what was decided last.
#include <cstdio>

#include "base/disk.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "cluster/cluster.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew ps [RUN] [options]\n\n"
    "The workers of a run that trains with several: who computes what, how fast, and what was decided last.\n"
    "Of a run of a command: its attempts and its processes.\n"
    "RUN: a run directory, the end of its name, or 'last' (the default).\n\n"
    "options:\n"
    "  --json       the coordinator's whole answer\n"
    "  --root DIR   where runs are looked for (default: runs)";

}  // namespace

int run_ps(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  std::string run, root = "runs";
  bool json = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--root") {
      if (i + 1 == arguments.size()) throw UsageError("--root needs a value", "sinew ps --help");
      root = arguments[++i];
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew ps --help");
    } else if (run.empty()) {
      run = word;
    } else {
      throw UsageError("ps takes one run, and '" + word + "' is a second", "sinew runs lists all of them");
    }
  }
  // A group that still waits for its workers is no run yet: only its coordinator's file is there.
  const std::string meant = run.empty() ? "last" : run;
  const std::string directory = system_disk().exists(rundir::file_in(meant, rundir::kCoordinatorFile))
                                    ? meant
                                    : report::pick_run(root, meant).directory;
  if (const std::string status = command_status(directory, json); !status.empty()) {
    std::fwrite(status.data(), 1, status.size(), stdout);
    return kDone;
  }
  const cluster::CoordinatorInfo info = cluster::running_coordinator(root, directory);
  const std::string answer = cluster::fetch_status(info, directory);
  const std::string text = json ? answer + "\n" : cluster::status_text(directory, cluster::status_of_json(answer));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kDone;
}

}  // namespace sinew::cli
