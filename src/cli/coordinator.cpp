// `sinew coordinator RUN_DIR`: the process members of a run talk to. `sinew train --workers N` starts it, and another
// when it dies: it has soft state only.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"
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

// Numbers of one coordinator's life; the next one begins where they end, so nothing is given twice.
constexpr int64_t kNumbersOfALife = 1'000'000;
constexpr double kTickSeconds = 0.05;

struct Wishes {
  std::string run_directory, listen = "127.0.0.1", job;
  int64_t workers = 0, minimum = 1, port = 0;
  bool tls = false;
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew coordinator --help");
      return arguments[++i];
    };
    if (word == "--workers") {
      wishes.workers = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--min") {
      wishes.minimum = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--listen") {
      wishes.listen = value();
    } else if (word == "--job") {
      wishes.job = value();
    } else if (word == "--tls") {
      wishes.tls = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew coordinator --help");
    } else if (wishes.run_directory.empty()) {
      wishes.run_directory = word;
    } else {
      throw UsageError("coordinator takes one run directory, and '" + word + "' is a second");
    }
  }
  if (wishes.run_directory.empty() || wishes.workers == 0)
    throw UsageError("coordinator needs a run directory and --workers N", "sinew coordinator --help");
  const size_t colon = wishes.listen.rfind(':');
  if (colon != std::string::npos && wishes.listen.find(':') == colon) {
    wishes.port = whole_number("the port of --listen", wishes.listen.substr(colon + 1), 0, 65535);
    wishes.listen.resize(colon);
  }
  return wishes;
}

// This life's numbers are taken on disk before any is given. Where it listens, and that it is this process, stands
// there only once it does; until then members knock at the predecessor's door and come again.
cluster::CoordinatorInfo begin_life(const std::string& run_directory) {
  cluster::CoordinatorInfo file;
  if (const auto before = cluster::read_coordinator_info(run_directory)) {
    file = *before;
    file.life = before->life + 1;
    file.over.reset();
  } else {
    file.secret = cluster::new_secret();
  }
  cluster::write_coordinator_info(run_directory, file);
  return file;
}

// Not synced: it is for a successor on this machine, and must not make a lost member's work wait for a disk.
void write_view(const std::string& path, const cluster::View& view) {
  Disk& disk = system_disk();
  const std::string text = cluster::to_json(view) + "\n";
  try {
    const auto file = disk.create(path + ".new");
    file->write(std::as_bytes(std::span(text)));
    file->close();
    disk.rename(path + ".new", path);
  } catch (const DiskError&) {  // a full disk: a successor then asks the members, as it can
  }
}

std::optional<cluster::View> read_view(const std::string& path) {
  if (!system_disk().exists(path)) return std::nullopt;
  return cluster::view_of_json(read_text(system_disk(), path));
}

cluster::CoordinatorOptions options_of(const Wishes& wishes, const cluster::CoordinatorInfo& file,
                                       supervise::RunLog& log) {
  cluster::CoordinatorOptions options;
  options.cluster.minimum = wishes.minimum;
  options.cluster.wanted = wishes.workers;
  options.secret = file.secret;
  options.tls = wishes.tls || file.with_tls();  // what began with it goes on with it
  options.run_directory = wishes.run_directory;
  options.job = wishes.job;
  options.listen = wishes.listen;
  options.port = static_cast<uint16_t>(wishes.port);
  options.at_least = Generation(file.life * kNumbersOfALife);
  options.first_id = MemberId(file.life * kNumbersOfALife);
  const std::string path = rundir::file_in(wishes.run_directory, rundir::kViewFile);
  options.last_view = read_view(path);
  options.on_view = [path](const cluster::View& view) { write_view(path, view); };
  options.log = [&log](const std::string& line) { log.write(line); };
  return options;
}

}  // namespace

int run_coordinator(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  Signals asked({SIGINT, SIGTERM, SIGHUP});  // before any thread begins: none is interrupted
  Clock& clock = system_clock();
  if (!system_disk().exists(wishes.run_directory))
    throw UsageError("there is no " + wishes.run_directory, "make it, or check the path");
  supervise::RunLog log(wishes.run_directory, "coordinator", clock);
  cluster::CoordinatorInfo file = begin_life(wishes.run_directory);
  cluster::Coordinator coordinator(options_of(wishes, file, log), clock);
  file.url = coordinator.url();
  file.pid = getpid();
  cluster::write_coordinator_info(wishes.run_directory, file);
  log.write("listens at " + file.url + ", pid " + std::to_string(file.pid));
  while (true) {
    coordinator.tick();
    if (const auto code = coordinator.over()) {
      try {
        cluster::record_end(wishes.run_directory, file.pid, *code);
      } catch (const Error& trouble) {  // whoever keeps it alive has heard it, and tries again
        log.write(trouble.what());
      }
      log.write("the run is over with exit code " + std::to_string(*code));
      return static_cast<int>(*code);
    }
    if (const int signal = asked.next()) {
      log.write("ends by " + signal_name(signal));
      return 128 + signal;
    }
    clock.sleep_seconds(kTickSeconds);
  }
}

}  // namespace sinew::cli
