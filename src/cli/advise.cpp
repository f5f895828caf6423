// Implements `sinew advise`: says what limited a run, or what limits a job, and what would make it faster.
#include "advise/advise.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <limits>

#include "base/clock.h"
#include "base/disk.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "base/terminal_text.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

std::optional<spec::Job> resolved_job(const std::string& run) {
  const std::string file = rundir::file_in(run, rundir::kResolvedFile);
  if (!system_disk().exists(file)) return std::nullopt;
  spec::Reading resolved = spec::read_job(read_text(system_disk(), file), file);
  return resolved.problems.empty() ? std::optional(std::move(resolved.job)) : std::nullopt;
}

// A run that trains publishes its accounts; a run that has ended, its report.
std::optional<rundir::Outcome> accounts_of(const std::string& run) {
  const std::string file = rundir::file_in(run, rundir::kAccountsFile);
  try {
    if (!rundir::report_text(system_disk(), run).empty() || !system_disk().exists(file)) return std::nullopt;
    return rundir::parse_accounts(read_text(system_disk(), file));
  } catch (const DiskError&) {  // the run has just ended, and has removed the file
    return std::nullopt;
  }
}

// The run if a user can ask it for something; else "".
std::string to_control(const std::string& run) {
  const auto coordinator = cluster::coordinator_info_now(run);
  return coordinator && !coordinator->exit_code && rundir::lock_is_held(run) ? run : "";
}

void show(const advise::Record& record, const spec::Job* job, const std::string& running, bool json) {
  const advise::Verdict verdict = advise::judge(record, job);
  print_text(stdout, json ? advise::verdict_json(verdict)
                          : printable(advise::verdict_text(verdict, record.time, running), true));
  std::fflush(stdout);
}

int advise_run(const std::string& run, bool json) {
  const auto job = resolved_job(run);
  const auto accounts = accounts_of(run);
  const auto outcome = accounts ? accounts : rundir::parse_outcome(rundir::report_text(system_disk(), run));
  advise::Record record = advise::record_of(outcome.value_or(rundir::Outcome()), run);
  if (job && outcome->status == "done") {
    record.monitored = report::monitored_metric(*job);
    // a metric of the training has a value in each line of metrics, and not only in evaluations
    if (record.monitored.metric.starts_with("val/"))
      record.evaluations = report::read_evaluations_of(run, record.monitored.metric);
  }
  const bool trains = accounts && rundir::lock_is_held(run);
  if (accounts && !json)
    std::printf("%s step %lld\n\n", trains ? "so far, until" : "the run died; until about",
                static_cast<long long>(accounts->steps));
  show(record, job ? &*job : nullptr, accounts ? to_control(run) : "", json);
  return kDone;
}

// Shows what limits the run between two accounts that it publishes, until it ends. A step or an evaluation may take
// long.
int advise_live(const std::string& run, bool json) {
  constexpr double kLookSeconds = 0.5, kSilentSeconds = 30;
  const auto job = resolved_job(run);
  const Terminal screen = terminal_of(STDOUT_FILENO);
  std::optional<rundir::Outcome> before;
  double news = system_clock().monotonic_seconds();
  while (true) {
    const bool trains = rundir::lock_is_held(run);  // before the files, which are final if it does not
    const auto now = accounts_of(run);
    const bool reported = !rundir::report_text(system_disk(), run).empty();
    if (reported || (now && !trains)) return advise_run(run, json);
    if (!trains)
      throw Error("ADVISE_NOT_LIVE", run + " does not train, and has no report",
                  "go on with it: sinew resume " + shell_quoted(run));
    if (now && (!before || now->seconds != before->seconds)) {
      const auto earlier = before ? std::optional(advise::record_of(*before, run)) : std::nullopt;
      const auto newest = advise::record_of(*now, run);
      const auto window = earlier ? advise::between(*earlier, newest) : std::optional(newest);
      if (window && !json) {
        std::printf("%sstep %lld, the last %.0f s\n\n", screen.moves_cursor ? "\x1b[H\x1b[2J" : "\n",
                    static_cast<long long>(now->steps), window->seconds());
      }
      if (window) show(*window, job ? &*job : nullptr, to_control(run), json);
      before = now;
      news = system_clock().monotonic_seconds();
    }
    if (system_clock().monotonic_seconds() > news + kSilentSeconds) {
      print_text(stderr,
                 "nothing new for 30 s: a step or an evaluation takes long, or the run prepares its first step\n");
      news = std::numeric_limits<double>::infinity();
    }
    system_clock().sleep_seconds(kLookSeconds);
  }
}

// "faster/job.yaml" becomes "faster/job.advised.yaml".
std::string advised(const std::string& job) {
  const std::filesystem::path path(job);
  return (path.parent_path() / (path.stem().string() + ".advised" + path.extension().string())).string();
}

}  // namespace

int run_advise(const Arguments& arguments) {
  std::string root = "runs";
  task::Advise task;
  bool live = false;
  supervise::SandboxChoice sandbox;
  Options options("advise", "What limits a run or a job, and what would make it faster");
  options
      .about(
          "Of a run, advise says what its time went to. A job it trains for some seconds with one worker on "
          "this machine, and saves nothing. A remedy has an estimate of what it gains, with a range; --apply measures "
          "it.")
      .argument("RUN|JOB", task.job, "a run directory, the end of a run's id, last, or a job file")
      .rest("key=value", task.overrides, "overrides of the job")
      .text("--root", "DIR", root, "directory of the runs")
      .flag("--json", task.json, "print one JSON object")
      .duration("--time", task.seconds, "how long to measure a job")
      .flag("--apply", task.apply, "write the job with better options, and measure what they gain")
      .flag("--change-result", task.change_result, "with --apply: also options that change the trained model")
      .text("--output", "FILE", task.output, "the changed job file; default: JOB with .advised in its name");
  add_sandbox(options, sandbox).example("sinew advise last").example("sinew advise job.yaml --apply");
  options.flag("--live", live, "of a run that trains: show what limits it now, until it ends");
  if (!options.parse(arguments)) return kDone;
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(task.job, unknown)) {
    const bool yaml = task.job.ends_with(".yaml") || task.job.ends_with(".yml");
    if (yaml) options.refuse("there is no job file " + task.job, "check the path");
    if (task.apply || task.change_result || !task.output.empty() || !task.overrides.empty())
      options.refuse("--apply, --change-result, --output and overrides need a job file",
                     "sinew advise job.yaml --apply");
    const std::string run = rundir::find_run(root, task.job);
    return live ? advise_live(run, task.json) : advise_run(run, task.json);
  }
  if (live) options.refuse("--live needs a run, not a job file", "sinew advise last --live");
  if (!task.apply && (task.change_result || !task.output.empty()))
    options.refuse("--change-result and --output need --apply", "sinew advise job.yaml --apply");
  if (task.output.empty()) task.output = advised(task.job);
  if (task.apply && system_disk().exists(task.output))
    options.refuse(task.output + " exists already", "remove it, or give another --output");
  if (!prepare_training(task.job, task.overrides, "sinew advise", sandbox, "a scratch directory", task.sandbox))
    return kUsage;
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
