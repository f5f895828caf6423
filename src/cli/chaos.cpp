// Implements `sinew chaos`, which kills and stops the workers of a user's own job, and tests that the model stays the
// same.
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cluster/cluster.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

using supervise::ChaosEvent;
using supervise::LedgerVerdict;

constexpr double kLookSeconds = 0.05;

struct Given {
  std::string job, run_directory, against;
  std::vector<std::string> overrides;
  std::optional<int64_t> seed;
  int64_t workers = 3, events = 10;
  double every = 5;
  bool dry_run = false;
};

ProcessOptions training(const Given& given, const std::string& run_directory, int64_t workers) {
  ProcessOptions process;
  process.command = {this_program(), "train", given.job, "--run-dir", run_directory, "--ledger"};
  process.command.insert(process.command.end(), given.overrides.begin(), given.overrides.end());
  const std::vector<std::string> how = workers > 0 ? std::vector<std::string>{"--workers", std::to_string(workers)}
                                                   : std::vector<std::string>{"workers.min=1", "workers.max=1"};
  process.command.insert(process.command.end(), how.begin(), how.end());
  process.output = run_directory + ".log";
  process.death_signal = SIGTERM;
  return process;
}

// The signal that asked chaos to end, or 0. Every wait checks it and throws, which unwinds the stack and so kills the
// processes that chaos started.
volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int signal) {
  interrupted = signal;
}

void throw_if_interrupted() {
  if (interrupted != 0) throw Error("RUN_INTERRUPTED", "interrupted by " + signal_name(interrupted), "start it again");
}

// `steps` is the number of steps of the undisturbed run. Returns the number of events that took place.
int64_t disturb(const Given& given, const std::vector<ChaosEvent>& plan, int64_t steps, const std::string& directory) {
  supervise::DisturbedRun run(training(given, directory, given.workers), directory, plan, steps);
  const auto say = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  while (!run.ended()) {
    throw_if_interrupted();
    system_clock().sleep_seconds(kLookSeconds);
    run.look(system_clock().monotonic_seconds(), say);
  }
  if (*run.ended() != ProcessEnd{0, 0})
    throw Error("CHAOS_RUN_FAILED", "the disturbed run " + to_string(*run.ended()),
                "its output is in " + directory + ".log");
  return run.events_done();
}

void calm_run(const Given& given, const std::string& directory) {
  std::printf("%s: undisturbed, one process\n", directory.c_str());
  std::fflush(stdout);
  Process process(training(given, directory, 0));
  std::optional<ProcessEnd> end;
  while (!(end = process.wait(kLookSeconds))) throw_if_interrupted();
  if (*end != ProcessEnd{0, 0})
    throw Error("CHAOS_RUN_FAILED", "the undisturbed run " + to_string(*end), "its output is in " + directory + ".log");
}

// The disturbed run does not measure anew what the other one has decided.
void take_decisions(Given& given, const spec::Job& job, const std::string& calm) {
  const auto decided = load_job(calm + "/resolved.yaml", {});
  if (!decided) throw Error("JOB_UNREADABLE", calm + "/resolved.yaml is not a job", "name another run with --against");
  const auto& trainer = decided->trainer;
  supervise::take_decided(given.overrides, supervise::decided_options(job, trainer.precision, trainer.memory_format));
}

std::string text_of(const std::string& path) {
  return system_disk().exists(path) ? read_text(system_disk(), path) : "";
}

// Returns the run's job without its options about workers and lanes.
std::string job_of(const std::string& directory) {
  auto job = load_job(directory + "/resolved.yaml", {});
  if (!job) throw Error("JOB_UNREADABLE", directory + "/resolved.yaml is not a job", "name another run with --against");
  job->workers = {};
  job->trainer.lanes.reset();
  return spec::to_yaml(*job);
}

}  // namespace

int run_chaos(const Arguments& arguments) {
  Given given;
  Options options("chaos", "Kills workers of a run by a seed, and compares it with an undisturbed run");
  options
      .about(
          "Trains the job undisturbed with one process. Then trains it with several, while chaos kills, stops and "
          "continues workers, scales the run and kills its coordinator, by a plan that the seed makes. Then compares "
          "the state after every step.")
      .argument("JOB", given.job, "the job file")
      .rest("key=value", given.overrides, "overrides")
      .integer("--seed", "N", given.seed, 0, INT64_MAX, "the plan; the same seed makes the same plan")
      .integer("--workers", "N", given.workers, 1, cluster::kMostWorkers, "processes at the start of the disturbed run")
      .integer("--events", "N", given.events, 1, 100'000, "events of the plan")
      .duration("--kill-every", given.every,
                "mean time between events; shorter if the run is too short for all of them")
      .text("--run-dir", "DIR", given.run_directory, "where both runs are kept; by default runs/<job>/chaos-<utc>")
      .text("--against", "RUN", given.against,
            "compare with this run and make no undisturbed one: any run of the job with --ledger")
      .flag("--dry-run", given.dry_run, "print the plan and do nothing")
      .notes(
          "Exit code 0: every step has the same digest in both runs; 4: some step differs or is missing; 1: a run "
          "failed, or the run ended before any event.")
      .example("sinew chaos job.yaml --seed 1");
  if (!options.parse(arguments)) return kDone;
  if (!given.seed) options.refuse("chaos needs --seed N, so that it can be repeated", "--seed 1");
  const auto job = load_training(given.job, given.overrides, "sinew chaos");
  if (!job) return kUsage;
  const auto plan = supervise::chaos_plan(static_cast<uint64_t>(*given.seed), given.workers, given.events, given.every);
  if (given.dry_run) {
    for (const ChaosEvent& event : plan) std::printf("%8.2f s  %s\n", event.at, to_string(event).c_str());
    return kDone;
  }
  if (given.run_directory.empty())
    given.run_directory = "runs/" + job->name + "/chaos-" + utc_compact(system_clock().wall_seconds());
  const std::string own = given.run_directory + "/undisturbed", wild = given.run_directory + "/disturbed";
  const std::string calm = given.against.empty() ? own : given.against;
  if (!given.against.empty() && !system_disk().exists(calm + "/ledger.jsonl"))
    throw UsageError("RUN_WITHOUT_LEDGER", calm + " has no ledger.jsonl to compare with",
                     "--against a run that was made with --ledger");
  if (system_disk().exists(own) || system_disk().exists(wild))
    throw UsageError("RUN_EXISTS", given.run_directory + " already holds runs", "name another --run-dir");
  system_disk().make_directories(given.run_directory);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!parent_ignored(signal)) std::signal(signal, on_interrupt);
  }
  if (given.against.empty()) calm_run(given, calm);
  if (spec::wants_fastest(*job)) take_decisions(given, *job, calm);
  std::printf("%s: %lld workers, seed %lld\n", wild.c_str(), static_cast<long long>(given.workers),
              static_cast<long long>(*given.seed));
  std::fflush(stdout);
  const int64_t done = disturb(given, plan, supervise::last_step(text_of(calm + "/ledger.jsonl")), wild);
  if (job_of(calm) != job_of(wild))
    throw Error("CHAOS_OTHER_JOB", calm + " is a run of another job", "compare its resolved.yaml with that in " + wild);
  const LedgerVerdict verdict =
      supervise::compare_ledgers(text_of(calm + "/ledger.jsonl"), text_of(wild + "/ledger.jsonl"));
  std::printf("%lld of %zu events took place before the run ended\n%s\n", static_cast<long long>(done), plan.size(),
              to_string(verdict).c_str());
  if (done == 0) std::printf("no event took place: train longer\n");
  if (verdict.steps > 0 && !verdict.same()) return kCheckFailed;
  return verdict.same() && done > 0 ? kDone : kTrainingError;  // otherwise nothing was compared or disturbed
}

}  // namespace sinew::cli
