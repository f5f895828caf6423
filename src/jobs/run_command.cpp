// Implements run_command, which reports events to the state machine and executes the actions that it decides on.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/hex.h"
#include "base/machine.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/random.h"
#include "base/shell_loop.h"
#include "jobs/attempt.h"
#include "jobs/attempt_log.h"
#include "jobs/attempt_state_machine.h"
#include "jobs/jobs.h"
#include "jobs/run_reporter.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

constexpr double kTailSeconds = 0.2;   // seconds between two reads of a metrics file
constexpr double kLimitSeconds = 0.5;  // seconds between two checks of limits that no control group enforces
constexpr double kIdleSeconds = 1;     // the longest sleep
// How long a slow reader may take to receive the last lines of an attempt. output/ has all lines.
constexpr double kShownSeconds = 5;
constexpr double kOverwrittenSeconds = 5;  // the least time between two states of a progress bar that are shown
constexpr double kForever = std::numeric_limits<double>::infinity();

// Returns a random number. It makes the waits of many runs differ if they failed at the same time.
double jitter_of(const std::string& mark) {
  RandomStream random(random_key({std::stoull(mark.substr(0, 16), nullptr, 16)}));
  return random.uniform();
}

class Runner final : public Shell {
 public:
  Runner(const CommandRun& run, Clock& clock);

  void begin();
  void on_signal(int signal) override;
  std::optional<int> turn() override;
  std::vector<int> descriptors() const override;
  double seconds_to_turn() const override;
  // Ends the run as failed: a file cannot be written, or an attempt cannot be started.
  int fail(const Error& error);

 private:
  double now() const { return clock_.monotonic_seconds(); }
  void continue_earlier_attempts();
  void ask_for_id(const std::string& resolved_yaml);

  void read_events();
  void check_limits();
  void say_stop(const std::string& why);
  void take_line(int64_t rank, bool errors, const Line& line);
  bool take_metrics(std::string_view line, bool file);

  std::optional<int> act(const Action& action);
  std::string hint() const;
  void start();
  RankContext context_of(const AttemptRecord& record) const;
  std::string metrics_path(const RankContext& context) const;
  void end();

  const CommandRun& run_;
  const std::string directory_;
  Clock& clock_;
  rundir::RunLock lock_;
  AttemptLog attempts_;
  RunReporter reporter_;
  AttemptStateMachine state_;
  Policy policy_;
  std::string server_run_id_;
  Limits limits_;  // the limits of the newest attempt
  std::unique_ptr<FileTail> tail_;
  std::unique_ptr<Attempt> attempt_;
  double next_check_ = 0, next_overwritten_ = 0, jitter_ = 0, shown_until_ = kForever;
  int64_t open_attempt_ = 0;  // the attempt whose begin is in the log but not its end; 0 if there is none
  bool said_limits_ = false;
};

Runner::Runner(const CommandRun& run, Clock& clock)
    : run_(run),
      directory_(std::filesystem::absolute(run.directory).lexically_normal().string()),
      clock_(clock),
      lock_(lock_run(directory_, clock)),
      attempts_(system_disk(), directory_, clock),
      reporter_(run, directory_, clock) {
  const spec::CommandOptions& command = run.job.command;
  const spec::TimeLimit limit = spec::time_limit(run.job.budget);
  policy_ = {command.retries, command.grace_seconds, command.attempt_seconds, limit.seconds, limit.option};
}

// ---- the beginning -------------------------------------------------------------------------------------------------

void Runner::begin() {
  rundir::remove_abandoned_writes(system_disk(), directory_);
  continue_earlier_attempts();
  system_disk().remove_file(rundir::file_in(directory_, rundir::kOutcomeFile));
  system_disk().remove_file(rundir::file_in(directory_, rundir::kRunPageFile));
  const std::string resolved = rundir::file_in(directory_, rundir::kResolvedFile);
  if (!system_disk().exists(resolved)) write_durably(system_disk(), resolved, to_yaml(run_.job));
  system_disk().make_directories(rundir::file_in(directory_, rundir::kCheckpoints));
  system_disk().make_directories(directory_ + "/output");
  if (run_.run_id) ask_for_id(read_text(system_disk(), resolved));
  state_.next_start = now();
}

void Runner::continue_earlier_attempts() {
  for (const AttemptRecord& record : attempts_.close_interrupted())
    reporter_.say(report::Level::warning, "attempt-end",
                  "attempt " + std::to_string(record.attempt) + ": " + record.why);
  const std::vector<AttemptRecord> all = read_attempts(system_disk(), directory_);
  for (const AttemptRecord& record : all) {
    state_.attempt = std::max(state_.attempt, record.attempt);
    state_.used_seconds += record.seconds;
    if (reporter_.started() == 0) reporter_.set_started(record.began);
  }
  if (reporter_.started() == 0) reporter_.set_started(clock_.wall_seconds());
  if (all.empty() || all.back().reason != to_string(ExitReason::done)) return;
  state_.phase = AttemptStateMachine::Phase::ended;  // the command is done; only report.json is missing
  state_.last = AttemptResult{ExitReason::done, all.back().why};
}

void Runner::ask_for_id(const std::string& resolved_yaml) {
  const auto id = run_.run_id(resolved_yaml);
  if (!id) {
    reporter_.say(report::Level::warning, "server",
                  id.error() + "; an MLflow client of the command will create a run of its own");
    return;
  }
  server_run_id_ = *id;
}

// ---- events --------------------------------------------------------------------------------------------------------

void Runner::on_signal(int signal) {
  if (signal == SIGUSR1) {
    reporter_.say(report::Level::info, "signal",
                  "SIGUSR1 has no effect: a command decides itself when it saves a checkpoint");
    return;
  }
  const std::string text = request_stop(now(), state_, signal);
  if (!text.empty()) reporter_.say(report::Level::info, "stop", text);
}

std::optional<int> Runner::turn() {
  reporter_.tick();
  read_events();
  check_limits();
  for (const Action& action : next_actions(now(), state_, policy_)) {
    if (const auto code = act(action)) return code;
  }
  return std::nullopt;
}

void Runner::read_events() {
  if (!attempt_) return;
  if (tail_) tail_->read([this](const Line& line) { take_metrics(line.text, true); });
  const bool gone = attempt_->turn();
  if (!gone && !attempt_->failed_rank().empty())
    say_stop(stop_attempt(state_, StopReason::rank_failed, attempt_->failed_rank() + "; sinew ends the other ranks"));
  if (gone) {
    end();
  } else if (attempt_->only_leftovers_remain()) {
    only_leftovers_remain(now(), state_);
  }
}

void Runner::check_limits() {
  if (!attempt_ || now() < next_check_) return;
  next_check_ = now() + kLimitSeconds;
  if (const auto over = attempt_->over_limit()) say_stop(stop_attempt(state_, over->first, over->second));
}

void Runner::say_stop(const std::string& why) {
  if (!why.empty()) reporter_.say(report::Level::info, "ending", why);
}

void Runner::take_line(int64_t rank, bool errors, const Line& line) {
  const bool metrics = !errors && rank == 0 && run_.job.command.metrics.from == "stdout";
  if (metrics && take_metrics(line.text, false)) return;
  if (rank != 0 || now() >= shown_until_ || (line.overwritten && now() < next_overwritten_)) return;
  if (line.overwritten) next_overwritten_ = now() + kOverwrittenSeconds;
  reporter_.pass_on(line.text, errors);
}

// Takes the metrics of a line. Returns false if it contains none.
bool Runner::take_metrics(std::string_view line, bool file) {
  bool taken = false;
  const auto verdict = reporter_.take_line(line, file, taken);
  if (verdict) say_stop(stop_attempt(state_, verdict->reason, verdict->why));
  return taken;
}

// ---- actions -------------------------------------------------------------------------------------------------------

std::optional<int> Runner::act(const Action& action) {
  switch (action.kind) {
    case Action::Kind::start: start(); break;
    case Action::Kind::terminate:
      reporter_.log("terminate", "sent SIGTERM: " + action.why);
      attempt_->terminate();
      break;
    case Action::Kind::kill:
      if (!action.why.empty()) reporter_.say(report::Level::warning, "kill", "sent SIGKILL: " + action.why);
      attempt_->kill();
      break;
    case Action::Kind::finish: {
      const bool failed = action.status == "failed";
      if (run_.logged && !server_run_id_.empty()) reporter_.keep_logged_metrics(server_run_id_);
      reporter_.finish({action.status, action.code, action.why, failed ? hint() : ""});
      return action.code;
    }
  }
  return std::nullopt;
}

std::string Runner::hint() const {
  const std::string again = "sinew resume " + run_.directory + " tries again";
  if (state_.last->reason == ExitReason::no_start) return again;
  return "look at " + output_path(run_.directory, state_.last->rank, "stderr") + "; " + again;
}

void Runner::start() {
  AttemptRecord record;
  record.attempt = state_.attempt + 1;
  record.began = clock_.wall_seconds();
  record.mark = random_hex(16);
  record.host = host_name();
  record.boot = boot_id();
  limits_ = make_groups(own_cgroup_paths(), record.mark, run_.job.command.resources);
  record.groups = limits_.groups;
  attempts_.begin(record);
  open_attempt_ = record.attempt;
  jitter_ = jitter_of(record.mark);

  Attempt::Plan plan;
  plan.job = &run_.job;
  plan.context = context_of(record);
  plan.limits = limits_;
  plan.kept = {lock_.descriptor()};
  plan.visit = [this](int64_t rank, bool errors, const Line& line) { take_line(rank, errors, line); };
  reporter_.attempt_begins(record.attempt, command_of(run_.job), plan.context.resume_from);
  if (!limits_.why_not.empty() && !std::exchange(said_limits_, true))
    reporter_.say(report::Level::warning, "limits", limits_.why_not);
  if (run_.job.command.metrics.from == "file") tail_ = std::make_unique<FileTail>(metrics_path(plan.context));
  attempt_began(now(), state_);
  attempt_ = std::make_unique<Attempt>(std::move(plan));
}

RankContext Runner::context_of(const AttemptRecord& record) const {
  RankContext context;
  context.attempt = record.attempt;
  context.run_directory = directory_;
  context.mark = record.mark;
  context.resume_from = newest_checkpoint(rundir::file_in(directory_, rundir::kCheckpoints));
  context.metrics_file = directory_ + "/output/metrics.jsonl";
  context.master_port = free_port();
  context.server = run_.server;
  context.run_id = server_run_id_;
  return context;
}

std::string Runner::metrics_path(const RankContext& context) const {
  const spec::CommandOptions& command = run_.job.command;
  if (command.metrics.file.empty()) return context.metrics_file;
  return (std::filesystem::path(command.workdir) / command.metrics.file).string();
}

void Runner::end() {
  shown_until_ = now() + kShownSeconds;
  const AttemptFacts facts = attempt_->finish();
  shown_until_ = kForever;
  if (tail_) tail_->read([this](const Line& line) { take_metrics(line.text, true); }, true);
  tail_.reset();
  const double seconds = now() - state_.began;
  const AttemptResult result = attempt_ended(now(), state_, policy_, facts, jitter_);
  open_attempt_ = 0;
  attempts_.end(state_.attempt, to_string(result.reason), result.why, seconds, facts.unkillable);
  const bool another_follows = state_.phase == AttemptStateMachine::Phase::waiting;
  reporter_.attempt_ends(state_.attempt, result, attempt_->lost_bytes(), another_follows);
  attempt_.reset();
}

int Runner::fail(const Error& error) {
  attempt_.reset();  // kills the processes and waits for their end
  remove_groups(limits_.groups);
  const bool running = state_.phase == AttemptStateMachine::Phase::running;
  const double seconds = running ? now() - state_.began : 0;
  if (open_attempt_ > 0) attempts_.end(std::exchange(open_attempt_, 0), "failed", error.what(), seconds);
  reporter_.finish({"failed", kTrainingError, error.what(), error.hint});
  return kTrainingError;
}

// ---- waiting -------------------------------------------------------------------------------------------------------

std::vector<int> Runner::descriptors() const {
  return attempt_ ? attempt_->descriptors() : std::vector<int>{};
}

double Runner::seconds_to_turn() const {
  if (state_.phase == AttemptStateMachine::Phase::ended) return 0;
  double seconds = !attempt_ ? kIdleSeconds : tail_ ? kTailSeconds : kLimitSeconds;
  if (const auto deadline = next_deadline(state_, policy_)) seconds = std::min(seconds, *deadline - now());
  return std::max(0.0, seconds);
}

}  // namespace

void prepare_process() {
  open_standard_streams();
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw Error("JOBS_NO_SUBREAPER", std::string("cannot become a subreaper: ") + std::strerror(errno),
                "run sinew on Linux 3.4 or later");
  std::signal(SIGCHLD, SIG_DFL);  // if this signal were ignored, waitpid would not find the children
}

int run_command(const CommandRun& run, SignalSource& signals, Clock& clock) {
  Runner runner(run, clock);
  try {
    runner.begin();
    return run_shell(runner, signals, kIdleSeconds);
  } catch (const Error& error) {
    return runner.fail(error);
  }
}

}  // namespace sinew::jobs
