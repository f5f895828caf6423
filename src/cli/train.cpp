// Implements `sinew train` and `sinew resume`: checks the job file and makes the run directory. This process then
// supervises workers, or becomes a worker itself.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/command_job.h"
#include "cli/data_manifest.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

struct Given {
  std::vector<std::string> overrides;
  std::string job_or_run, run_directory, root = "runs", listen, server, launcher, format = "human";
  int64_t workers = 0;  // 0: as many as the job file says
  std::optional<int64_t> parallel;
  double wait_seconds = 300, hang_seconds = supervise::WorkerLaunch().hang_seconds;
  bool resume = false, tls = false, insecure = false, ledger = false;
  std::optional<supervise::Launch> launch;
  supervise::SandboxChoice sandbox;
  bool json() const { return format == "json"; }
};

void add_shared(Options& options, Given& given) {
  options
      .integer("--workers", "N", given.workers, 1, cluster::kMostWorkers,
               "train with N processes, restarted when they die; the model is the same for every N")
      .text("--listen", "ADDRESS", given.listen,
            "with --workers: where workers of other machines reach the run; by default 127.0.0.1")
      .flag(
          "--tls", given.tls,
          "with --workers: everything between the run's processes goes through TLS, without certificates; the default "
          "if other machines reach the run")
      .flag("--insecure", given.insecure, "with --workers: no TLS although other machines reach the run")
      .duration(
          "--hang-after", given.hang_seconds,
          "with --workers: if nothing moves for so long, and for 20 usual steps, sinew names the worker that holds up "
          "the run, and half as long later ends it")
      .integer("--parallel", "N", given.parallel, 1, study::kMostSlots, "with data.split.folds: folds side by side")
      .flag("--ledger", given.ledger, "write ledger.jsonl: the digest of the training state after every step")
      .choice("--log-format", given.format, {"human", "json"}, "json: one object a line")
      .text("--server", "URL", given.server, "of a sinew server, passed to a job's command; by default SINEW_SERVER");
  add_sandbox(options, given.sandbox, true);
}

// Supervises several worker processes. A process that a launcher started supervises only one worker, because the run's
// other workers have their own supervisors.
int start_group(const spec::Job& about, const supervise::WorkerLaunch& launch, const Given& given) {
  supervise::SupervisorOptions options;
  options.launch = launch;
  options.job_name = about.name;
  options.workers = given.workers > 0 ? given.workers : about.workers.max;
  options.minimum = std::min(about.workers.min, options.workers);
  options.workers_per_machine = options.workers;
  if (given.launch) {
    options.workers = 1;
    options.elsewhere = given.launch->size - 1;
    options.minimum = std::min(about.workers.min, given.launch->size);
    options.workers_per_machine = supervise::sharers_here(given.launch);
  }
  options.listen = given.listen.empty() ? supervise::listen_address(given.launch) : given.listen;
  options.tls = given.tls || (!given.insecure && supervise::is_exposed(options.listen, launch.link_listen));
  options.decides_first = spec::wants_fastest(about);
  options.say = print_sentence;
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1});  // before any thread starts
  return supervise::supervise(options, signals, system_clock());
}

bool in_group(const spec::Job& about, const Given& given) {
  return given.launch || given.workers > 0 || about.workers.max > 1;
}

// Supervises a group if the user asked for one. Otherwise this process becomes the worker.
int start(const spec::Job& about, const supervise::WorkerLaunch& launch, const Given& given) {
  if (in_group(about, given)) return start_group(about, launch, given);
  task::Train train;
  train.job = launch.job;
  train.job_text = launch.job_text;
  train.overrides = launch.overrides;
  train.run_directory = launch.run_directory;
  train.resume = launch.resume;
  train.ledger = launch.ledger;
  train.json_log = launch.json_log;
  train.sandbox = launch.sandbox;
  return become_worker(train, launch.run_directory);
}

supervise::WorkerLaunch launch_options(const Given& given) {
  supervise::WorkerLaunch launch;
  launch.programs = programs();
  launch.ledger = given.ledger;
  launch.json_log = given.json();
  launch.hang_seconds = given.hang_seconds;
  launch.link_listen = own_variable("SINEW_LINK_LISTEN");
  launch.link_advertise = own_variable("SINEW_LINK_ADVERTISE");
  return launch;
}

std::optional<task::Sandbox> sandbox_for(const spec::Job& job, const supervise::WorkerLaunch& launch,
                                         const Given& given) {
  supervise::SandboxNeeds needs{.sources = supervise::sources_of(job, launch.job, launch.run_directory),
                                .writable = launch.run_directory,
                                .mirror = job.checkpoint.mirror,
                                .links = in_group(job, given)};
  const int64_t workers = given.workers > 0 ? given.workers : job.workers.max;
  needs.workers = given.launch ? supervise::sharers_here(given.launch) : workers;
  return supervise::sandbox_of(given.sandbox, needs, print_sentence);
}

void check_options(const spec::Job& about, const Given& given, const std::string& job_file) {
  if (about.command.given()) supervise::refuse_untrusted_command({job_file, given.run_directory});
  if (given.parallel && !about.data.trains_folds())
    throw UsageError("OPTION_INVALID", "--parallel is for a training of all folds", "give data.split.folds");
  if (!in_group(about, given) && !about.command.given() && (!given.listen.empty() || given.tls || given.insecure))
    throw UsageError("OPTION_INVALID", "--listen, --tls and --insecure are for a run with workers", "add --workers N");
}

// Runs the command of the job instead of a training. `run`: the run directory, which holds its job.yaml.
int start_command(const spec::Job& job, const std::string& run, const Given& given, bool resume) {
  const bool for_workers = given.launch || given.workers > 0 || !given.listen.empty() || given.tls;
  if (for_workers || given.ledger || given.sandbox.on)
    throw UsageError("OPTION_INVALID", "a command has no workers, no ledger and no sandbox",
                     "resources.nproc starts several processes of it");
  return run_command_job(job, {.run_directory = run, .server = given.server, .resume = resume, .json = given.json()});
}

// Trains each fold of a cross-validation. `text`: the job file, with the overrides in `given` not applied.
int train_folds(const spec::Job& job, const std::string& text, const std::string& directory, const Given& given,
                bool resume) {
  const bool of_one_run = given.launch || !given.listen.empty() || given.tls || given.insecure || given.ledger;
  if (of_one_run || given.sandbox.on || given.json())
    throw UsageError("OPTION_INVALID", "a training of all folds takes no options of one run but --workers",
                     "leave the others out, or train one fold: data.split.fold=0");
  check_data_of_folds(job);
  study::NewStudy study{directory, given.job_or_run, text, given.overrides, job};
  if (given.workers > 0) study.overrides.push_back("workers.max=" + std::to_string(given.workers));
  return lead_study(given.parallel, [&](const study::Options& all) { return study::train_folds(all, study, resume); });
}

}  // namespace

int run_train(const Arguments& arguments) {
  Given given;
  Options options("train", "Trains a model from a job file");
  options.argument("JOB", given.job_or_run, "the job file")
      .rest("key=value", given.overrides, "overrides, for example optimizer.lr=3e-4 trainer.max_duration=5ep")
      .text("--run-dir", "DIR", given.run_directory, "where the run is kept; by default runs/<job>/<utc>-<id>")
      .flag("--resume", given.resume, "with --run-dir: resume its newest intact checkpoint, or start if there is none");
  add_shared(options, given);
  options
      .choice("--launcher", given.launcher, {"env"},
              "this is one of N processes that srun, torchrun or mpirun started: rank 0 supervises, all train; with a "
              "--run-dir that all of them see")
      .duration("--wait", given.wait_seconds, "with --launcher: how long the others wait for rank 0")
      .notes(
          "A job with a command is run instead of trained; --run-dir, --resume, --log-format and --server apply to "
          "it.\n"
          "First Ctrl-C (or SIGTERM): finish the step, save a checkpoint, stop (exit code 75). Second: stop now.\n"
          "SIGUSR1: save a checkpoint now.")
      .example("sinew train job.yaml --workers 4");
  if (!options.parse(arguments)) return kDone;
  if (given.resume && given.run_directory.empty())
    options.refuse("--resume needs --run-dir", "name the run's directory, or use: sinew resume last");
  if (!given.launcher.empty() && given.run_directory.empty())
    options.refuse("--launcher needs --run-dir", "name a directory that all machines see");
  if (!given.launcher.empty() && given.workers > 0)
    options.refuse("--workers and --launcher contradict each other: the launcher says how many",
                   "leave one of them out");
  if (!given.launcher.empty()) given.launch = supervise::launch_from(own_environment());
  const std::string text = read_job_file(given.job_or_run);
  auto job = read_job_text(text, job_file_name(given.job_or_run), given.overrides);
  if (!job) return kUsage;
  registry::check_out_init_from(*job, given.overrides, "runs", own_variable("SINEW_STORE"));
  check_options(*job, given, job_file_name(given.job_or_run));
  supervise::WorkerLaunch launch = launch_options(given);
  launch.job = job_file_name(given.job_or_run);
  launch.job_text = text;
  launch.overrides = given.overrides;
  launch.resume = given.resume;
  if (!job->command.given()) ignore_checkpoint_requests();  // before anybody can see the run and send one
  launch.run_directory =
      given.run_directory.empty() ? rundir::new_run_directory("runs", job->name, system_clock()) : given.run_directory;
  if (job->data.trains_folds()) return train_folds(*job, text, launch.run_directory, given, given.resume);
  if (!job->command.given()) launch.sandbox = sandbox_for(*job, launch, given);
  const bool first = !given.launch || given.launch->rank == 0;
  if (first) rundir::keep_job_file(launch.run_directory, text, given.overrides, given.resume);
  if (job->command.given()) return start_command(*job, launch.run_directory, given, given.resume);
  if (first) record_data(*job, launch.run_directory, given.run_directory.empty() ? "runs" : "");
  // If the run has a resolved.yaml, the workers resume the job as it was resolved when the run began.
  if (given.resume && rundir::is_run(launch.run_directory)) {
    launch.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
    launch.job_text.clear();
    launch.overrides.clear();
  }
  if (first) return start(*job, launch, given);
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  return supervise::join_launched(launch, supervise::sharers_here(given.launch), given.wait_seconds, signals,
                                  system_clock(), print_sentence);
}

int run_resume(const Arguments& arguments) {
  Given given;
  Options options("resume", "Resumes a run that was stopped or killed");
  options
      .about(
          "Resumes from the newest intact checkpoint, with the options of the run's resolved.yaml. A later end makes a "
          "run train longer, also one that is done: the schedules are then those of the longer training.")
      .argument("RUN", given.job_or_run, "a run directory, the end of a run's id, or last")
      .rest("key=value", given.overrides,
            "another end: trainer.max_duration, budget.time, budget.training, early_stopping.patience, "
            "early_stopping.min_delta or objective")
      .text("--root", "DIR", given.root, "where runs are found by name");
  add_shared(options, given);
  options.example("sinew resume last trainer.max_duration=20ep");
  if (!options.parse(arguments)) return kDone;
  supervise::WorkerLaunch launch = launch_options(given);
  launch.run_directory = rundir::find_run(given.root, given.job_or_run);
  launch.job = rundir::file_in(launch.run_directory, rundir::kResolvedFile);
  launch.resume = true;
  const auto job = load_job(launch.job, given.overrides);
  if (!job) return kUsage;
  check_options(*job, given, launch.job);
  if (job->data.trains_folds()) {
    if (given.workers > 0 || !given.overrides.empty())
      options.refuse((given.workers > 0 ? "--workers" : "'" + given.overrides[0] + "'") +
                         ": a cross-validation keeps its workers and its end, so that its folds stay alike",
                     "leave it out");
    return train_folds(*job, read_job_file(launch.job), launch.run_directory, given, true);
  }
  if (!given.overrides.empty())
    supervise::give_new_end(programs(), *job, launch.run_directory, given.overrides, system_clock());
  if (job->command.given()) return start_command(*job, launch.run_directory, given, true);
  launch.sandbox = sandbox_for(*job, launch, given);
  ignore_checkpoint_requests();
  return start(*job, launch, given);
}

}  // namespace sinew::cli
