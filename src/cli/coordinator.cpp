// `sinew coordinator RUN_DIR`: the process members of a run talk to. `sinew train --workers N` starts it, and another
// when it dies: it has soft state only.
#include <csignal>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cluster/cluster.h"
#include "supervise/supervise.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew coordinator RUN_DIR --workers N [options]\n\n"
    "Says who is in a run and who computes what. 'sinew train --workers N' starts one by itself; by hand it is for\n"
    "members that something else starts. It ends with the run, with the run's exit code.\n\n"
    "options:\n"
    "  --workers N       workers the run is to have\n"
    "  --min M           workers needed to begin (default: 1)\n"
    "  --listen ADDRESS  where members reach it (default: 127.0.0.1); address:port for a fixed port\n"
    "  --job NAME        the job's name, for those who ask\n"
    "  --tls             HTTPS, trusted by who has the secret; members' links are inside TLS, too\n\n"
    "Writes RUN_DIR/coordinator.json (where it is, and the secret: readable by its owner alone) and\n"
    "RUN_DIR/coordinator.log (what it decided and why).";

struct Options {
  cluster::RunCoordinatorOptions run;
  bool workers_given = false;
};

Options parse(const Arguments& arguments) {
  Options options;
  cluster::RunCoordinatorOptions& run = options.run;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew coordinator --help");
      return arguments[++i];
    };
    if (word == "--workers") {
      run.workers = whole_number(word, value(), 1, kMostWorkers);
      options.workers_given = true;
    } else if (word == "--min") {
      run.minimum = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--listen") {
      run.listen = value();
    } else if (word == "--job") {
      run.job = value();
    } else if (word == "--tls") {
      run.tls = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew coordinator --help");
    } else if (run.run_directory.empty()) {
      run.run_directory = word;
    } else {
      throw UsageError("coordinator takes one run directory, and '" + word + "' is a second");
    }
  }
  if (run.run_directory.empty() || !options.workers_given)
    throw UsageError("coordinator needs a run directory and --workers N", "sinew coordinator --help");
  const size_t colon = run.listen.rfind(':');
  if (colon != std::string::npos && run.listen.find(':') == colon) {
    run.port = static_cast<uint16_t>(whole_number("the port of --listen", run.listen.substr(colon + 1), 0, 65535));
    run.listen.resize(colon);
  }
  return options;
}

}  // namespace

int run_coordinator(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  cluster::RunCoordinatorOptions options = parse(arguments).run;
  Signals stop({SIGINT, SIGTERM, SIGHUP});  // before any thread starts, so that no thread receives a signal
  Clock& clock = system_clock();
  if (!system_disk().exists(options.run_directory))
    throw UsageError("there is no " + options.run_directory, "create it, or check the path");
  supervise::RunLog log(options.run_directory, "coordinator", clock);
  options.log = [&log](const std::string& line) { log.write(line); };
  return cluster::run_coordinator(options, stop, clock);
}

}  // namespace sinew::cli
