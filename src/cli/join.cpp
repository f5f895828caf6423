// `sinew join`: one more worker for a run, from this machine; kept alive until the run is over.
#include <csignal>
#include <cstdio>
#include <span>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew join RUN [options]\n"
    "       sinew join URL --secret-file FILE JOB RUN_DIR [key=value ...]\n\n"
    "A worker on this machine takes part in a run that 'sinew train --workers N --listen ADDRESS' supervises "
    "elsewhere.\n"
    "RUN: its directory, where both machines see it. URL: where its coordinator listens (coordinator.json says it); "
    "then\n"
    "JOB and the overrides are those of the run, and RUN_DIR is a directory of this machine.\n\n"
    "options:\n"
    "  --secret-file FILE  holds the secret of coordinator.json\n"
    "  --root DIR          where RUN is looked for by name (default: runs)\n"
    "  --hang-after D      as the run was started with (default: 60s)\n\n"
    "With a URL that begins with https:// only who has the secret is trusted, on both ends.\n"
    "Started N times by srun, torchrun or mpirun it is N workers; those of one machine share its cores.\n\n"
    "First Ctrl-C: the worker hands over and leaves (exit code 75). Second: it is killed.";

struct Wishes {
  std::string where, secret_file, root = "runs";
  std::vector<std::string> more;  // JOB, RUN_DIR and overrides
  double hang_seconds = supervise::WorkerLaunch().hang_seconds;
  bool by_url() const { return where.starts_with("http://") || where.starts_with("https://"); }
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew join --help");
      return arguments[++i];
    };
    if (word == "--secret-file") {
      wishes.secret_file = value();
    } else if (word == "--root") {
      wishes.root = value();
    } else if (word == "--hang-after") {
      wishes.hang_seconds = duration_seconds(word, value());
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew join --help");
    } else if (wishes.where.empty()) {
      wishes.where = word;
    } else {
      wishes.more.push_back(word);
    }
  }
  if (wishes.where.empty()) throw UsageError("join needs a run", "sinew join --help");
  if (wishes.by_url() && (wishes.secret_file.empty() || wishes.more.size() < 2))
    throw UsageError("with a URL join needs --secret-file, JOB and RUN_DIR", "sinew join --help");
  if (!wishes.by_url() && !(wishes.secret_file.empty() && wishes.more.empty()))
    throw UsageError("with a run's directory join needs nothing else", "sinew join --help");
  return wishes;
}

std::string read_secret(const std::string& path) {
  std::string text(1024, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty()) throw UsageError(path + " holds no secret");
  return text;
}

// With a URL, coordinator.json in this machine's own directory says where the coordinator is.
supervise::WorkerLaunch launch_of(const Wishes& wishes) {
  supervise::WorkerLaunch launch;
  launch.programs = programs();
  launch.hang_seconds = wishes.hang_seconds;
  if (wishes.by_url()) {
    launch.job = wishes.more[0];
    launch.run_directory = wishes.more[1];
    launch.overrides = {wishes.more.begin() + 2, wishes.more.end()};
    system_disk().make_directories(launch.run_directory);
    cluster::CoordinatorInfo info;
    info.url = wishes.where;
    info.secret = read_secret(wishes.secret_file);
    cluster::write_coordinator_info(launch.run_directory, info);
  } else {
    cluster::running_coordinator(wishes.root, wishes.where, &launch.run_directory);
    launch.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
    launch.resume = true;
  }
  return launch;
}

}  // namespace

int run_join(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  if (wishes.by_url() && !load_training(wishes.more[0], {wishes.more.begin() + 2, wishes.more.end()}, "sinew join"))
    return kUsage;
  const auto launched = supervise::launch_of(supervise::process_environment());
  const supervise::WorkerLaunch launch = launch_of(wishes);
  const int64_t sharers = supervise::sharers_here(launched);
  const auto make = [&](bool) {
    const auto info = cluster::coordinator_info_now(launch.run_directory);
    return supervise::worker_start(launch, info ? info->url : "", false, sharers);
  };
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  return supervise::restart_loop(launch.run_directory, make, signals, system_clock(), [](const std::string& sentence) {
    std::fprintf(stderr, "sinew join: %s\n", sentence.c_str());
  });
}

}  // namespace sinew::cli
