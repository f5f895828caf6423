// Implements `sinew advise`: says what limited a run, or what limits a job, and what would make it faster.
#include "advise/advise.h"

#include <cstdio>
#include <filesystem>

#include "base/disk.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

int advise_run(const std::string& run, bool json) {
  Disk& disk = system_disk();
  const auto outcome = rundir::parse_outcome(rundir::report_text(disk, run)).value_or(rundir::Outcome());
  advise::Record record = advise::record_of(outcome, run);
  const std::string file = rundir::file_in(run, rundir::kResolvedFile);
  spec::Reading resolved;
  if (disk.exists(file)) resolved = spec::read_job(read_text(disk, file), file);
  const bool known = disk.exists(file) && resolved.problems.empty();
  if (known && outcome.status == "done") {
    record.monitored = report::monitored_metric(resolved.job);
    record.evaluations = report::read_evaluations_of(run, record.monitored.metric);
  }
  const advise::Verdict verdict = advise::judge(record, known ? &resolved.job : nullptr);
  const std::string text = json ? advise::verdict_json(verdict) : advise::verdict_text(verdict, record.time);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kDone;
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
  supervise::SandboxChoice sandbox;
  Options options("advise", "What limits a run or a job, and what would make it faster");
  options
      .about(
          "Of a finished run, advise says what its time went to. A job it trains for some seconds with one worker on "
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
  if (!options.parse(arguments)) return kDone;
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(task.job, unknown)) {
    const bool yaml = task.job.ends_with(".yaml") || task.job.ends_with(".yml");
    if (yaml) options.refuse("there is no job file " + task.job, "check the path");
    if (task.apply || task.change_result || !task.output.empty() || !task.overrides.empty())
      options.refuse("--apply, --change-result, --output and overrides need a job file",
                     "sinew advise job.yaml --apply");
    return advise_run(rundir::find_run(root, task.job), task.json);
  }
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
