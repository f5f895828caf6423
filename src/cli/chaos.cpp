// `sinew chaos`: proof on one's own job and machine that nothing that happens to workers changes the model.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/programs.h"
#include "cluster/cluster.h"

namespace sinew::cli {
namespace {

using supervise::ChaosEvent;
using supervise::LedgerVerdict;

constexpr const char* kHelp =
    "usage: sinew chaos JOB --seed N [key=value ...] [options]\n\n"
    "Trains the job undisturbed with one process, then with several, while they are killed, stopped and continued,\n"
    "scaled, and their coordinator is killed, by a plan the seed makes. Then compares the state after every step.\n\n"
    "options:\n"
    "  --seed N         which plan\n"
    "  --workers W      processes at the start of the disturbed run (default: 3)\n"
    "  --events E       things that happen (default: 10)\n"
    "  --kill-every D   time between them, on average: 2s, 300ms (default: 5s); less where the run is too short for "
    "all\n"
    "  --run-dir DIR    where both runs are kept (default: runs/<job>/chaos-<utc>)\n"
    "  --against RUN    compare with this run instead of making an undisturbed one: the undisturbed directory of an\n"
    "                   earlier chaos of the same job, or any run of it with --ledger\n"
    "  --dry-run        print the plan and do nothing\n\n"
    "Exit code 0: every step has the same digest in both; 1: it has not, a run failed, or nothing\n"
    "happened before the run ended.";

constexpr double kLookSeconds = 0.05;
constexpr double kAnswerSeconds = 2;

struct Wishes {
  std::string job, run_directory, against;
  std::vector<std::string> overrides;
  std::optional<int64_t> seed;
  int64_t workers = 3, events = 10;
  double every = 5;
  bool dry_run = false;
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew chaos --help");
      return arguments[++i];
    };
    if (word == "--seed") {
      wishes.seed = whole_number(word, value(), 0, INT64_MAX);
    } else if (word == "--workers") {
      wishes.workers = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--events") {
      wishes.events = whole_number(word, value(), 1, 100000);
    } else if (word == "--kill-every") {
      wishes.every = duration_seconds(word, value());
    } else if (word == "--run-dir") {
      wishes.run_directory = value();
    } else if (word == "--against") {
      wishes.against = value();
    } else if (word == "--dry-run") {
      wishes.dry_run = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew chaos --help");
    } else if (wishes.job.empty()) {
      wishes.job = word;
    } else {
      wishes.overrides.push_back(word);
    }
  }
  if (wishes.job.empty()) throw UsageError("chaos needs a job file", "sinew chaos job.yaml --seed 1");
  if (!wishes.seed) throw UsageError("chaos needs --seed N, so that it can be repeated", "--seed 1");
  return wishes;
}

ProcessOptions training(const Wishes& wishes, const std::string& run_directory, int64_t workers) {
  ProcessOptions process;
  process.command = {this_program(), "train", wishes.job, "--run-dir", run_directory, "--ledger"};
  process.command.insert(process.command.end(), wishes.overrides.begin(), wishes.overrides.end());
  const std::vector<std::string> how = workers > 0 ? std::vector<std::string>{"--workers", std::to_string(workers)}
                                                   : std::vector<std::string>{"workers.min=1", "workers.max=1"};
  process.command.insert(process.command.end(), how.begin(), how.end());
  process.output = run_directory + ".log";
  process.death_signal = SIGTERM;
  return process;
}

// Looked at everywhere it waits: what was started is killed on the way out.
volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int signal) {
  interrupted = signal;
}

void throw_if_interrupted() {
  if (interrupted != 0) throw Error("interrupted by " + signal_name(interrupted));
}

// The disturbed run while it goes on.
class Disturbed {
 public:
  Disturbed(const Wishes& wishes, const std::string& directory)
      : directory_(directory), process_(training(wishes, directory, wishes.workers)) {}

  std::optional<ProcessEnd> ended() { return process_.wait(); }
  std::optional<cluster::CoordinatorStatus> status() const {
    const auto file = cluster::read_coordinator_info(directory_);
    if (!file || file->url.empty()) return std::nullopt;
    return cluster::CoordinatorClient(file->url, file->secret, kAnswerSeconds).status();
  }

  // False: it could not be done now.
  bool apply(const ChaosEvent& event, const cluster::CoordinatorStatus& status) {
    const std::vector<pid_t> pids = workers_of(status);
    const auto picked = [&](size_t offset) { return pids[(event.pick + offset) % pids.size()]; };
    if (pids.empty() && event.kind != ChaosEvent::Kind::kill_coordinator) return false;
    switch (event.kind) {
      case ChaosEvent::Kind::kill_worker: return ::kill(picked(0), SIGKILL) == 0;
      case ChaosEvent::Kind::kill_two: {
        const bool first = ::kill(picked(0), SIGKILL) == 0;
        return (pids.size() < 2 || ::kill(picked(1), SIGKILL) == 0) && first;
      }
      case ChaosEvent::Kind::pause_worker: paused_.insert(picked(0)); return ::kill(picked(0), SIGSTOP) == 0;
      case ChaosEvent::Kind::kill_coordinator: {
        const auto file = cluster::read_coordinator_info(directory_);
        return file && file->pid > 1 && ::kill(static_cast<pid_t>(file->pid), SIGKILL) == 0;
      }
      case ChaosEvent::Kind::scale: {
        const auto file = cluster::read_coordinator_info(directory_);
        return file && cluster::CoordinatorClient(file->url, file->secret, kAnswerSeconds).scale(event.workers);
      }
    }
    return false;
  }
  void go_on() {
    for (const pid_t pid : paused_) ::kill(pid, SIGCONT);
    paused_.clear();
  }

 private:
  // Only processes that belong to this run and live on this machine: children of its supervisor.
  std::vector<pid_t> workers_of(const cluster::CoordinatorStatus& status) const {
    std::vector<pid_t> pids;
    for (const cluster::MemberStatus& member : status.members) {
      const auto pid = static_cast<pid_t>(member.pid);
      const auto facts = pid > 1 ? process_facts(pid) : std::nullopt;
      if (facts && facts->parent == process_.pid()) pids.push_back(pid);
    }
    return pids;
  }

  std::string directory_;
  Process process_;
  std::set<pid_t> paused_;
};

// The undisturbed run made `steps`. Returns how many events took place.
int64_t disturb(const Wishes& wishes, const std::vector<ChaosEvent>& plan, int64_t steps,
                const std::string& directory) {
  Clock& clock = system_clock();
  Disturbed run(wishes, directory);
  size_t next = 0;
  int64_t done = 0;
  double began = -1, goes_on = -1;
  std::optional<ProcessEnd> end;
  while (!(end = run.ended())) {
    throw_if_interrupted();
    clock.sleep_seconds(kLookSeconds);
    const double now = clock.monotonic_seconds();
    if (goes_on >= 0 && now >= goes_on) {
      run.go_on();
      goes_on = -1;
      std::printf("         the stopped worker goes on\n");
    }
    if (next == plan.size()) continue;
    const auto status = run.status();
    if (!status || status->step() == 0) continue;
    if (began < 0) began = now;
    if (!supervise::is_due(plan, next, now - began, status->step(), steps) || !run.apply(plan[next], *status)) continue;
    std::printf("step %4lld: %s\n", static_cast<long long>(status->step()), to_string(plan[next]).c_str());
    std::fflush(stdout);
    if (plan[next].kind == ChaosEvent::Kind::pause_worker) goes_on = now + plan[next].seconds;
    ++next;
    ++done;
  }
  if (*end != ProcessEnd{0, 0})
    throw Error("the disturbed run " + to_string(*end), "its words are in " + directory + ".log");
  return done;
}

void calm_run(const Wishes& wishes, const std::string& directory) {
  std::printf("%s: undisturbed, one process\n", directory.c_str());
  std::fflush(stdout);
  Process process(training(wishes, directory, 0));
  std::optional<ProcessEnd> end;
  while (!(end = process.wait(kLookSeconds))) throw_if_interrupted();
  if (*end != ProcessEnd{0, 0})
    throw Error("the undisturbed run " + to_string(*end), "its words are in " + directory + ".log");
}

std::string text_of(const std::string& path) {
  return system_disk().exists(path) ? read_text(system_disk(), path) : "";
}

// What was trained, whoever computed it.
std::string job_of(const std::string& directory) {
  auto job = load_job(directory + "/resolved.yaml", {});
  if (!job) throw Error(directory + "/resolved.yaml is no job");
  job->workers = {};
  job->trainer.lanes.reset();
  return spec::to_yaml(*job);
}

}  // namespace

int run_chaos(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  Wishes wishes = parse(arguments);
  const auto job = load_training(wishes.job, wishes.overrides, "sinew chaos");
  if (!job) return kUsage;
  const auto plan =
      supervise::chaos_plan(static_cast<uint64_t>(*wishes.seed), wishes.workers, wishes.events, wishes.every);
  if (wishes.dry_run) {
    for (const ChaosEvent& event : plan) std::printf("%8.2f s  %s\n", event.at, to_string(event).c_str());
    return kDone;
  }
  if (wishes.run_directory.empty())
    wishes.run_directory = "runs/" + job->name + "/chaos-" + utc_compact(system_clock().wall_seconds());
  const std::string own = wishes.run_directory + "/undisturbed", wild = wishes.run_directory + "/disturbed";
  const std::string calm = wishes.against.empty() ? own : wishes.against;
  if (!wishes.against.empty() && !system_disk().exists(calm + "/ledger.jsonl"))
    throw UsageError(calm + " has no ledger.jsonl to compare with", "--against a run that was made with --ledger");
  if (system_disk().exists(own) || system_disk().exists(wild))
    throw UsageError(wishes.run_directory + " already holds runs", "name another --run-dir");
  system_disk().make_directories(wishes.run_directory);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_interrupt);
  if (wishes.against.empty()) calm_run(wishes, calm);
  std::printf("%s: %lld workers, seed %lld\n", wild.c_str(), static_cast<long long>(wishes.workers),
              static_cast<long long>(*wishes.seed));
  std::fflush(stdout);
  const int64_t done = disturb(wishes, plan, supervise::last_step(text_of(calm + "/ledger.jsonl")), wild);
  if (job_of(calm) != job_of(wild))
    throw Error(calm + " is a run of another job", "compare its resolved.yaml with that in " + wild);
  const LedgerVerdict verdict =
      supervise::compare_ledgers(text_of(calm + "/ledger.jsonl"), text_of(wild + "/ledger.jsonl"));
  std::printf("%lld of %zu events took place before the run ended\n%s\n", static_cast<long long>(done), plan.size(),
              to_string(verdict).c_str());
  if (done == 0) std::printf("nothing was shown: train longer\n");
  return verdict.same() && done > 0 ? kDone : kTrainingError;
}

}  // namespace sinew::cli
