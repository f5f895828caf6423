// `sinew train` and `sinew resume`: check the job file, make the run directory, become the worker.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "cli/data_manifest.h"
#include "cli/programs.h"
#include "http/http.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr const char* kTrainHelp =
    "usage: sinew train JOB [key=value ...] [options]\n\n"
    "Trains the model JOB describes; dotted overrides change single options:\n"
    "  sinew train job.yaml optimizer.lr=3e-4 trainer.max_duration=5ep\n\n"
    "options:\n"
    "  --run-dir DIR         where the run is kept (default: runs/<job>/<utc>-<id>)\n"
    "  --workers N           train with N processes, started anew when they die; the model is the same for every N\n"
    "  --listen ADDRESS      with --workers: where workers of other machines reach the run (default: 127.0.0.1)\n"
    "  --tls                 with --workers: everything between its processes goes through TLS; needs no certificates\n"
    "  --launcher env        this is one of N processes that srun, torchrun or mpirun started: rank 0 supervises, all\n"
    "                        of them train; with a --run-dir all of them see\n"
    "  --wait SECONDS        with --launcher: how long the others wait for rank 0 (default: 300)\n"
    "  --hang-after D        with --workers: nothing moved for so long, and for 20 usual steps: it is said who holds\n"
    "                        the run, and half as long later that worker is ended (default: 60s)\n"
    "  --resume              with --run-dir: go on from its newest intact checkpoint, or start if there is none\n"
    "  --ledger              write ledger.jsonl: the digest of the training state after every step\n"
    "  --log-format FORMAT   human (default) or json: one object a line\n"
    "  --server URL          of a sinew server, which a job with a command is told (default: SINEW_SERVER)\n\n"
    "A job with a command is run instead of trained; of the options, --run-dir, --resume and the last two are for it.\n"
    "First Ctrl-C (or SIGTERM): finish the step, save a checkpoint, stop (exit code 75). Second: stop now.\n"
    "SIGUSR1: save a checkpoint now.";
constexpr const char* kResumeHelp =
    "usage: sinew resume RUN [options]\n\n"
    "Goes on with a run from its newest intact checkpoint. RUN: a run directory, the end of its name, or 'last'.\n\n"
    "options:\n"
    "  --root DIR            where runs are looked for (default: runs)\n"
    "  --workers N           with N processes; --listen ADDRESS, --tls and --hang-after D as for train\n"
    "  --ledger              write ledger.jsonl\n"
    "  --log-format FORMAT   human (default) or json\n"
    "  --server URL          of a sinew server, which a command is told (default: SINEW_SERVER)";

struct Words {
  std::vector<std::string> positional;               // JOB and overrides, or RUN
  std::string run_directory, root = "runs", listen;  // listen: empty: the default
  std::string server;                                // for a command
  int64_t workers = 0;                               // 0: as the job file says
  int64_t wait_seconds = 300;
  double hang_seconds = supervise::WorkerLaunch().hang_seconds;
  bool resume = false, tls = false, ledger = false, json_log = false;
  std::optional<supervise::Launch> launch;
};

supervise::Launch launch_from(const std::string& launcher) {
  if (launcher != "env") throw UsageError("--launcher is env, not '" + launcher + "'", "--launcher env");
  const auto launch = supervise::launch_of(supervise::process_environment());
  if (!launch) {
    throw UsageError("no launcher started this: there is no RANK, OMPI_COMM_WORLD_RANK or SLURM_STEP_ID",
                     "start it with srun, torchrun --no-python or mpirun; or leave --launcher out and say --workers N");
  }
  return *launch;
}

Words parse(const Arguments& arguments, const std::string& command) {
  Words words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew " + command + " --help");
      return arguments[++i];
    };
    if (word == "--run-dir" && command == "train") {
      words.run_directory = value();
    } else if (word == "--root" && command == "resume") {
      words.root = value();
    } else if (word == "--resume" && command == "train") {
      words.resume = true;
    } else if (word == "--workers") {
      words.workers = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--listen") {
      words.listen = value();
    } else if (word == "--tls") {
      words.tls = true;
    } else if (word == "--launcher" && command == "train") {
      words.launch = launch_from(value());
    } else if (word == "--server") {
      words.server = value();
    } else if (word == "--wait" && command == "train") {
      words.wait_seconds = whole_number(word, value(), 1, 86'400);
    } else if (word == "--hang-after") {
      words.hang_seconds = duration_seconds(word, value());
    } else if (word == "--ledger") {
      words.ledger = true;
    } else if (word == "--log-format") {
      const std::string format = value();
      if (format != "human" && format != "json")
        throw UsageError("--log-format is human or json, not '" + format + "'");
      words.json_log = format == "json";
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew " + command + " --help");
    } else {
      words.positional.push_back(word);
    }
  }
  return words;
}

std::string as_given(const std::string& path, const std::vector<std::string>& overrides) {
  std::string text = read_text(system_disk(), path);
  for (const std::string& override_text : overrides) text += "# override: " + override_text + "\n";
  return text;
}

constexpr const char* kAnywhere = "http://192.0.2.1";  // stands for all other machines; nothing is sent there

std::string listening(const Words& words) {
  if (!words.listen.empty()) return words.listen;
  const bool one_machine = !words.launch || words.launch->size == words.launch->local_size;
  const std::string outwards = one_machine ? "" : http::address_towards(kAnywhere);
  return outwards.empty() ? "127.0.0.1" : outwards;
}

void print_event(const std::string& sentence) {
  std::fprintf(stderr, "sinew: %s\n", sentence.c_str());
}

// Several processes under a supervisor. A process that a launcher started supervises a single worker: the other workers
// of the run have supervisors of their own.
int start_group(const spec::Job& about, const supervise::WorkerLaunch& launch, const Words& words) {
  supervise::SupervisorOptions options;
  options.launch = launch;
  options.job_name = about.name;
  options.workers = words.workers > 0 ? words.workers : about.workers.max;
  options.minimum = std::min(about.workers.min, options.workers);
  options.workers_per_machine = options.workers;
  if (words.launch) {
    options.workers = 1;
    options.elsewhere = words.launch->size - 1;
    options.minimum = std::min(about.workers.min, words.launch->size);
    options.workers_per_machine = supervise::sharers_here(*words.launch);
  }
  options.listen = listening(words);
  options.tls = words.tls;
  options.say = print_event;
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1});  // before any thread starts
  return supervise::supervise(options, signals, system_clock());
}

bool in_group(const spec::Job& about, const Words& words) {
  return words.launch || words.workers > 0 || about.workers.max > 1;
}

// Supervises a group if the user asked for one; else this process becomes the worker.
int start(const spec::Job& about, const supervise::WorkerLaunch& launch, const Words& words) {
  if (in_group(about, words)) return start_group(about, launch, words);
  task::Train train;
  train.job = launch.job;
  train.overrides = launch.overrides;
  train.run_directory = launch.run_directory;
  train.resume = launch.resume;
  train.ledger = launch.ledger;
  train.json_log = launch.json_log;
  return become_worker(train, launch.run_directory);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

supervise::WorkerLaunch launch_options(const Words& words) {
  supervise::WorkerLaunch launch;
  launch.programs = programs();
  launch.ledger = words.ledger;
  launch.json_log = words.json_log;
  launch.hang_seconds = words.hang_seconds;
  launch.link_listen = variable("SINEW_LINK_LISTEN");
  launch.link_advertise = variable("SINEW_LINK_ADVERTISE");
  return launch;
}

void check_words(const Words& words) {
  if (words.positional.empty())
    throw UsageError("train needs a job file", "sinew train job.yaml; sinew init DATA writes one");
  if (words.resume && words.run_directory.empty())
    throw UsageError("--resume needs --run-dir", "name the run's directory, or use: sinew resume last");
  if (words.launch && words.run_directory.empty())
    throw UsageError("--launcher needs --run-dir", "name a directory that all machines see");
  if (words.launch && words.workers > 0)
    throw UsageError("--workers and --launcher contradict each other: the launcher says how many",
                     "leave one of them out");
}

void check_group_words(const spec::Job& about, const Words& words) {
  if (!in_group(about, words) && !about.command.given() && (!words.listen.empty() || words.tls))
    throw UsageError("--listen and --tls are for a run with workers", "add --workers N");
}

// A command instead of a training: `directory` holds its job.yaml.
int start_command(const spec::Job& job, const std::string& directory, const Words& words, bool resume) {
  const bool of_workers = words.launch || words.workers > 0 || !words.listen.empty() || words.tls;
  if (of_workers || words.ledger)
    throw UsageError("a command has no workers and no ledger", "resources.nproc starts several processes of it");
  return run_command_job(job, {directory, words.server, resume, words.json_log});
}

}  // namespace

int run_train(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kTrainHelp)) return kDone;
  const Words words = parse(arguments, "train");
  check_words(words);
  const std::string& path = words.positional[0];
  supervise::WorkerLaunch launch = launch_options(words);
  launch.job = path;
  launch.overrides = {words.positional.begin() + 1, words.positional.end()};
  launch.resume = words.resume;
  const auto job = load_job(path, launch.overrides);
  if (!job) return kUsage;
  check_group_words(*job, words);
  launch.run_directory =
      words.run_directory.empty() ? rundir::new_run_directory("runs", job->name, system_clock()) : words.run_directory;
  const bool first = !words.launch || words.launch->rank == 0;
  if (first) rundir::keep_job_file(launch.run_directory, as_given(path, launch.overrides), words.resume);
  if (job->command.given()) return start_command(*job, launch.run_directory, words, words.resume);
  if (first) record_data(*job, launch.run_directory, words.run_directory.empty() ? "runs" : "");
  // The job as it was resolved when the run began, where it came that far.
  if (words.resume && system_disk().exists(launch.run_directory + "/resolved.yaml")) {
    launch.job = launch.run_directory + "/resolved.yaml";
    launch.overrides.clear();
  }
  if (first) return start(*job, launch, words);
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  return supervise::join_launched(launch, supervise::sharers_here(*words.launch),
                                  static_cast<double>(words.wait_seconds), signals, system_clock(), print_event);
}

int run_resume(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kResumeHelp)) return kDone;
  const Words words = parse(arguments, "resume");
  if (words.positional.size() != 1)
    throw UsageError("resume needs one run", "sinew resume last; sinew runs lists them");
  const report::RunSummary run = report::pick_run(words.root, words.positional[0]);
  const auto job = load_job(run.directory + "/resolved.yaml", {});
  if (!job) return kUsage;
  if (job->command.given()) return start_command(*job, run.directory, words, true);
  check_group_words(*job, words);
  supervise::WorkerLaunch launch = launch_options(words);
  launch.run_directory = run.directory;
  launch.job = rundir::file_in(run.directory, rundir::kResolvedFile);
  launch.resume = true;
  return start(*job, launch, words);
}

}  // namespace sinew::cli
