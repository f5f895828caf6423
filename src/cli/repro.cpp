// Implements `sinew repro RUN`, which trains a recorded job again and compares the two runs to the last bit.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/process.h"
#include "cli/data_manifest.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

struct Given {
  std::string root = "runs", run_directory, against, format = "table", run;
};

// The new run's output goes to stderr, so that stdout has only the verdict.
ProcessEnd train_again(const std::string& job, const std::string& run_directory, bool ledger,
                       const std::optional<task::Sandbox>& sandbox) {
  task::Train train;
  train.sandbox = sandbox;
  train.job = job;
  train.run_directory = run_directory;
  train.ledger = ledger;
  return supervise::run_task(programs(), train, run_directory, "/dev/stderr");
}

std::string train_fresh(const report::RunSummary& run, const Given& given) {
  const std::string job = run.directory + "/resolved.yaml";
  const auto about = load_job(job, {});
  if (!about)
    throw UsageError("JOB_UNREADABLE", job + " is not a job that this version can train", "sinew validate " + job);
  const std::string directory = given.run_directory.empty()
                                    ? rundir::new_run_directory("runs", about->name, system_clock())
                                    : given.run_directory;
  Disk& disk = system_disk();
  if (disk.exists(directory + "/resolved.yaml"))
    throw UsageError("RUN_EXISTS", directory + " already holds a run", "name another --run-dir");
  disk.make_directories(directory);
  write_durably(disk, directory + "/job.yaml", read_text(disk, job));
  record_data(*about, directory, given.root);
  const supervise::SandboxNeeds needs{supervise::sources_of(*about, job, run.directory), directory};
  const ProcessEnd end = train_again(job, directory, disk.exists(run.directory + "/ledger.jsonl"),
                                     supervise::sandbox_of({}, needs, print_sentence));
  if (end != ProcessEnd{})
    throw Error("REPRO_RUN_FAILED", "the new run in " + directory + " " + to_string(end),
                "see what it printed, and its log.jsonl");
  return directory;
}

int say(const registry::Comparison& comparison, const std::string& recorded, const std::string& again,
        const Given& given) {
  if (given.format == "json") {
    const nlohmann::json out{{"same", comparison.same},
                             {"why", comparison.why},
                             {"facts", comparison.facts},
                             {"recorded", recorded},
                             {"again", again}};
    std::puts(dump_json(out, 1).c_str());
  } else {
    std::printf("%s: %s\n", comparison.same ? "same" : "NOT the same", printable(comparison.why).c_str());
    // facts[0] is the likely cause, which the line above already contains.
    for (size_t i = comparison.same ? 0 : 1; i < comparison.facts.size(); ++i)
      std::printf("  %s\n", printable(comparison.facts[i]).c_str());
  }
  return comparison.same ? kDone : kCheckFailed;
}

}  // namespace

int run_repro(const Arguments& arguments) {
  Given given;
  Options options("repro", "Trains a recorded job again and compares it to the last bit");
  options
      .about(
          "Trains the job that RUN recorded (its resolved.yaml) in a fresh directory. Says whether the final state has "
          "the same digest, or else the first step that differs (if both runs have a ledger.jsonl) and the likely "
          "cause: the data, the job, the versions, or the CPU.")
      .argument("RUN", given.run, "a run directory, the end of a run's id, or last")
      .text("--root", "DIR", given.root, "where runs are found by name")
      .text("--run-dir", "DIR", given.run_directory, "where the new run is kept; by default runs/<job>/<utc>-<id>")
      .text("--against", "RUN", given.against, "train nothing and compare with this run, made earlier or elsewhere")
      .choice("--format", given.format, {"table", "json"}, "of the output")
      .notes("Exit codes: 0 the same; 1 error; 2 usage; 4 not the same.")
      .example("sinew repro last");
  if (!options.parse(arguments)) return kDone;
  const report::RunSummary run = report::pick_run(given.root, given.run);
  if (run.digest.empty()) {
    throw Error("RUN_INCOMPLETE", run.directory + " has no digest to compare with: it is " + run.status,
                "finish it first: sinew resume " + run.directory);
  }
  const registry::RunIdentity recorded = registry::read_identity(run.directory);
  if (!given.against.empty()) {
    const report::RunSummary other = report::pick_run(given.root, given.against);
    if (other.steps != run.steps)
      throw Error("RUNS_NOT_COMPARABLE",
                  run.directory + " is of " + std::to_string(run.steps) + " steps and " + other.directory + " of " +
                      std::to_string(other.steps) + " steps: their digests cannot be compared",
                  "compare runs that ended at the same step");
    return say(registry::compare(recorded, registry::read_identity(other.directory)), run.directory, other.directory,
               given);
  }
  if (run.status != "done") {
    throw Error("RUN_INCOMPLETE",
                run.directory + " ended early (" + run.status + "): its digest is of step " + std::to_string(run.steps),
                "finish it first: sinew resume " + run.directory);
  }
  if (!recorded.manual_changes.empty()) {
    throw Error("RUN_STEERED",
                run.directory + " was changed by requests while it trained: " + printable(recorded.manual_changes[0]) +
                    "; its job alone does not give the same bits",
                "compare with a run that got the same requests: sinew repro " + run.directory + " --against RUN");
  }
  if (!recorded.timed_changes.empty()) {
    throw Error(
        "RUN_STEERED",
        "the clock or a user chose steps of " + run.directory + ": " + printable(recorded.timed_changes[0]) +
            (recorded.timed_changes.size() > 1 ? " and " + std::to_string(recorded.timed_changes.size() - 1) + " more"
                                               : "") +
            "; another training would choose other steps, so its job alone does not give the same bits",
        "give trainer.eval_interval and trainer.max_duration in steps or epochs (100st, 1ep) for runs that can "
        "be repeated to the last bit");
  }
  const std::string again = train_fresh(run, given);
  return say(registry::compare(recorded, registry::read_identity(again)), run.directory, again, given);
}

}  // namespace sinew::cli
