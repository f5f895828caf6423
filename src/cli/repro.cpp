// `sinew repro RUN`: the recorded job once more, and whether it came to the same bits.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/data_manifest.h"
#include "cli/programs.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew repro RUN [options]\n\n"
    "Trains the job that RUN recorded (its resolved.yaml) once more, in a fresh directory, and compares: the same "
    "digest\n"
    "of the final state, or the first step at which they part (where both have a ledger.jsonl) and the likely cause:\n"
    "the data, the job, the versions, or the CPU. RUN: a run directory, the end of its name, or 'last'.\n\n"
    "options:\n"
    "  --root DIR       where runs are looked for (default: runs)\n"
    "  --run-dir DIR    where the new run is kept (default: runs/<job>/<utc>-<id>)\n"
    "  --against RUN    train nothing: compare with this run, made earlier or elsewhere\n"
    "  --format FORMAT  table (default) or json\n\n"
    "exit codes: 0 the same; 1 error; 2 usage; 4 not the same";

struct Wishes {
  std::string root = "runs", run_directory, against, format = "table", run;
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  const std::map<std::string, std::string*> texts = {{"--root", &wishes.root},
                                                     {"--run-dir", &wishes.run_directory},
                                                     {"--against", &wishes.against},
                                                     {"--format", &wishes.format}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (const auto text = texts.find(word); text != texts.end()) {
      if (++i == arguments.size()) throw UsageError(word + " needs a value", "sinew repro --help");
      *text->second = arguments[i];
    } else if (word.starts_with("-") || !wishes.run.empty()) {
      throw UsageError("'" + word + "' is not expected here", "sinew repro --help");
    } else {
      wishes.run = word;
    }
  }
  if (wishes.run.empty()) throw UsageError("repro needs a run", "sinew repro last");
  if (wishes.format != "table" && wishes.format != "json")
    throw UsageError("--format is table or json, not '" + wishes.format + "'", "sinew repro --help");
  return wishes;
}

// The new run's output goes to stderr, so that stdout has the verdict alone. The worker ends when this process does.
ProcessEnd train_again(const std::string& job, const std::string& run_directory, bool ledger) {
  task::Train train;
  train.job = job;
  train.run_directory = run_directory;
  train.ledger = ledger;
  const task::TaskFile file(train);
  ProcessOptions options;
  options.command = {programs().worker, file.path(), run_directory};
  if (std::getenv("MKL_CBWR") == nullptr) options.environment["MKL_CBWR"] = "AUTO";  // as become_worker
  options.output = "/dev/stderr";
  options.death_signal = SIGTERM;
  Process worker(options);
  while (true) {
    if (const auto end = worker.wait(3600)) return *end;
  }
}

std::string train_fresh(const report::RunSummary& run, const Wishes& wishes) {
  const std::string job = run.directory + "/resolved.yaml";
  const auto about = load_job(job, {});
  if (!about) throw UsageError(job + " is no job that this version can train", "sinew validate " + job);
  const std::string directory = wishes.run_directory.empty()
                                    ? rundir::new_run_directory("runs", about->name, system_clock())
                                    : wishes.run_directory;
  Disk& disk = system_disk();
  if (disk.exists(directory + "/resolved.yaml"))
    throw UsageError(directory + " already holds a run", "name another --run-dir");
  disk.make_directories(directory);
  write_durably(disk, directory + "/job.yaml", read_text(disk, job));
  record_data(*about, directory, wishes.root);
  const ProcessEnd end = train_again(job, directory, disk.exists(run.directory + "/ledger.jsonl"));
  if (end != ProcessEnd{})
    throw Error("the new run in " + directory + " " + to_string(end), "see what it printed, and its log.jsonl");
  return directory;
}

int say(const registry::Comparison& comparison, const std::string& recorded, const std::string& again,
        const Wishes& wishes) {
  if (wishes.format == "json") {
    const nlohmann::json out{{"same", comparison.same},
                             {"why", comparison.why},
                             {"facts", comparison.facts},
                             {"recorded", recorded},
                             {"again", again}};
    std::puts(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s\n", comparison.same ? "same" : "NOT the same", printable(comparison.why).c_str());
    // The first is the likely cause that was just told.
    for (size_t i = comparison.same ? 0 : 1; i < comparison.facts.size(); ++i)
      std::printf("  %s\n", printable(comparison.facts[i]).c_str());
  }
  return comparison.same ? kDone : kCheckFailed;
}

}  // namespace

int run_repro(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  const report::RunSummary run = report::pick_run(wishes.root, wishes.run);
  if (run.digest.empty()) {
    throw Error(run.directory + " has no digest to compare with: it is " + run.status,
                "let it end first: sinew resume " + run.directory);
  }
  const registry::RunIdentity recorded = registry::read_identity(run.directory);
  if (!wishes.against.empty()) {
    const report::RunSummary other = report::pick_run(wishes.root, wishes.against);
    if (other.steps != run.steps)
      throw Error(run.directory + " is of " + std::to_string(run.steps) + " steps and " + other.directory + " of " +
                      std::to_string(other.steps) + ": their digests say nothing of each other",
                  "compare runs that ended at the same step");
    return say(registry::compare(recorded, registry::read_identity(other.directory)), run.directory, other.directory,
               wishes);
  }
  if (run.status != "done") {
    throw Error(run.directory + " ended before its end (" + run.status + "): its digest is of step " +
                    std::to_string(run.steps),
                "let it end first: sinew resume " + run.directory);
  }
  if (!recorded.manual_changes.empty()) {
    throw Error(run.directory + " was steered while it trained: " + printable(recorded.manual_changes[0]) +
                    "; its job alone does not come to the same bits",
                "compare with a run that was steered alike: sinew repro " + run.directory + " --against RUN");
  }
  const std::string again = train_fresh(run, wishes);
  return say(registry::compare(recorded, registry::read_identity(again)), run.directory, again, wishes);
}

}  // namespace sinew::cli
