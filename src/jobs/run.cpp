// run_command: tells conduct.h what happens, and does what it says.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/disk.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/hex.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/random.h"
#include "base/signals.h"
#include "checkpoint/checkpoint.h"
#include "jobs/attempt.h"
#include "jobs/attempts.h"
#include "jobs/conduct.h"
#include "jobs/jobs.h"
#include "jobs/narrator.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

constexpr double kTickSeconds = 0.2;   // between two looks at a file of metrics
constexpr double kWatchSeconds = 0.5;  // between two looks at limits nobody enforces
constexpr double kIdleSeconds = 1;     // the longest sleep
constexpr double kShownSeconds = 5;    // for a slow reader to take the last lines of an attempt; output/ has them all
constexpr double kPassingSeconds = 5;  // between two states of a progress bar that are shown
constexpr double kAlways = std::numeric_limits<double>::infinity();

double jitter_of(const std::string& mark) {
  RandomStream random(random_key({std::stoull(mark.substr(0, 16), nullptr, 16)}));
  return random.uniform();
}

// 0, 1 and 2 are somebody's: a pipe that got one of them would be taken for the program's own.
void hold_standard_streams() {
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

class Runner {
 public:
  Runner(const CommandRun& run, Clock& clock)
      : run_(run),
        directory_(std::filesystem::absolute(run.directory).lexically_normal().string()),
        clock_(clock),
        lock_(take_run(directory_, clock)),
        attempts_(system_disk(), directory_, clock),
        narrator_(run, directory_, clock) {
    const spec::CommandOptions& command = run.job.command;
    policy_ = {command.retries, command.grace_seconds, command.attempt_seconds, run.job.budget.seconds};
    become_subreaper();
  }

  int run() {
    begin();
    while (true) {
      take_signals();
      hear();
      watch();
      for (const Action& action : next_actions(now(), state_, policy_)) {
        if (const auto code = act(action)) return *code;
      }
      wait();
    }
  }

  // What can not be written or started any more ends the run as failed.
  int fail(const Error& error) {
    attempt_.reset();  // kills and waits
    remove_groups(limits_.groups);
    const double seconds = state_.phase == Conduct::Phase::running ? now() - state_.began : 0;
    if (open_attempt_ > 0) attempts_.end(std::exchange(open_attempt_, 0), "failed", error.what(), seconds);
    narrator_.finish({"failed", kTrainingError, error.what(), error.hint});
    return kTrainingError;
  }

 private:
  double now() const { return clock_.monotonic_seconds(); }

  void begin() {
    for (const AttemptRecord& record : attempts_.close_open())
      narrator_.say(report::Level::warning, "attempt-end",
                    "attempt " + std::to_string(record.attempt) + ": " + record.why);
    const std::vector<AttemptRecord> all = read_attempts(system_disk(), directory_);
    for (const AttemptRecord& record : all) {
      state_.attempt = std::max(state_.attempt, record.attempt);
      state_.used_seconds += record.seconds;
      if (narrator_.started() == 0) narrator_.set_started(record.began);
    }
    if (narrator_.started() == 0) narrator_.set_started(clock_.wall_seconds());
    system_disk().remove_file(directory_ + "/report.json");
    const std::string resolved = directory_ + "/resolved.yaml";
    if (!system_disk().exists(resolved)) write_durably(system_disk(), resolved, to_yaml(run_.job));
    system_disk().make_directories(directory_ + "/checkpoints");
    system_disk().make_directories(directory_ + "/output");
    if (run_.run_id) ask_for_id(read_text(system_disk(), resolved));
    state_.next_start = now();
    if (all.empty() || all.back().ending != word_for(Ending::done)) return;
    state_.phase = Conduct::Phase::ended;  // only its report could not be written
    state_.last = Judgement{Ending::done, all.back().why};
  }

  void ask_for_id(const std::string& resolved_yaml) {
    const auto id = run_.run_id(resolved_yaml);
    if (!id) {
      narrator_.say(report::Level::warning, "server",
                    id.error() + "; an mlflow client of the command begins a run of its own");
      return;
    }
    server_run_id_ = *id;
  }

  void take_signals() {
    while (const int signal = signals_.next()) {
      if (signal == SIGUSR1) {
        narrator_.say(report::Level::info, "signal", "SIGUSR1: a command saves when it sees fit; nothing was done");
        continue;
      }
      const std::string said = stop_asked(now(), state_, signal);
      if (!said.empty()) narrator_.say(report::Level::info, "stop", said);
    }
  }

  void hear() {
    if (!attempt_) return;
    if (tail_) tail_->read([this](const Line& line) { take_metrics(line.text, true); });
    const bool gone = attempt_->turn();
    if (!gone && !attempt_->failed_rank().empty())
      say_end(end_attempt(state_, Cause::rank_failed, attempt_->failed_rank() + "; the others are ended"));
    if (gone) {
      end();
    } else if (attempt_->only_rest_left()) {
      only_rest_left(now(), state_);
    }
  }

  void watch() {
    if (!attempt_ || now() < next_watch_) return;
    next_watch_ = now() + kWatchSeconds;
    if (const auto over = attempt_->over_limit()) say_end(end_attempt(state_, over->first, over->second));
  }

  void say_end(const std::string& why) {
    if (!why.empty()) narrator_.say(report::Level::info, "ending", why);
  }

  void take_line(int64_t rank, bool errors, const Line& line) {
    const bool metrics = !errors && rank == 0 && run_.job.command.metrics.from == "stdout";
    if (metrics && take_metrics(line.text, false)) return;
    if (rank != 0 || now() >= shown_until_ || (line.passing && now() < next_passing_)) return;
    if (line.passing) next_passing_ = now() + kPassingSeconds;
    narrator_.pass_on(line.text, errors);
  }

  // False: it is no metric line.
  bool take_metrics(std::string_view line, bool file) {
    bool taken = false;
    const auto verdict = narrator_.take_line(line, file, taken);
    if (verdict) say_end(end_attempt(state_, verdict->cause, verdict->why));
    return taken;
  }

  std::optional<int> act(const Action& action) {
    switch (action.kind) {
      case Action::Kind::start: start(); break;
      case Action::Kind::terminate:
        narrator_.log("terminate", "SIGTERM: " + action.why);
        attempt_->terminate();
        break;
      case Action::Kind::kill:
        if (!action.why.empty()) narrator_.say(report::Level::warning, "kill", "killed: " + action.why);
        attempt_->kill();
        break;
      case Action::Kind::finish: {
        const bool failed = action.status == "failed";
        narrator_.finish({action.status, action.code, action.why, failed ? hint() : ""});
        return action.code;
      }
    }
    return std::nullopt;
  }

  std::string hint() const {
    const std::string again = "sinew resume " + run_.directory + " tries again";
    if (state_.last->ending == Ending::no_start) return again;
    return "look at " + output_path(run_.directory, state_.last->rank, "stderr") + "; " + again;
  }

  void start() {
    AttemptRecord record;
    record.attempt = state_.attempt + 1;
    record.began = clock_.wall_seconds();
    record.mark = random_hex(16);
    record.host = host_name();
    record.boot = boot_id();
    limits_ = make_groups(cgroup_places_here(), record.mark, run_.job.command.resources);
    record.groups = limits_.groups;
    attempts_.begin(record);
    open_attempt_ = record.attempt;
    jitter_ = jitter_of(record.mark);

    Attempt::Plan plan;
    plan.job = &run_.job;
    plan.seat = {0,
                 record.attempt,
                 directory_,
                 record.mark,
                 newest_checkpoint(directory_ + "/checkpoints"),
                 directory_ + "/output/metrics.jsonl",
                 free_port(),
                 run_.server,
                 server_run_id_};
    plan.limits = limits_;
    plan.kept = {lock_.descriptor()};
    plan.visit = [this](int64_t rank, bool errors, const Line& line) { take_line(rank, errors, line); };
    narrator_.attempt_begins(record.attempt, command_of(run_.job), plan.seat.resume_from);
    if (!limits_.why_not.empty() && !std::exchange(said_limits_, true))
      narrator_.say(report::Level::warning, "limits", limits_.why_not);
    if (run_.job.command.metrics.from == "file") tail_ = std::make_unique<FileTail>(metrics_path(plan.seat));
    attempt_began(now(), state_);
    attempt_ = std::make_unique<Attempt>(std::move(plan));
  }

  std::string metrics_path(const Seat& seat) const {
    const spec::CommandOptions& command = run_.job.command;
    if (command.metrics.file.empty()) return seat.metrics_file;
    return (std::filesystem::path(command.workdir) / command.metrics.file).string();
  }

  void end() {
    shown_until_ = now() + kShownSeconds;
    const AttemptFacts facts = attempt_->finish();
    shown_until_ = kAlways;
    if (tail_) tail_->read([this](const Line& line) { take_metrics(line.text, true); }, true);
    tail_.reset();
    const double seconds = now() - state_.began;
    const Judgement judged = attempt_ended(now(), state_, policy_, facts, jitter_);
    open_attempt_ = 0;
    attempts_.end(state_.attempt, word_for(judged.ending), judged.why, seconds, facts.left);
    narrator_.attempt_ends(state_.attempt, judged, attempt_->lost_bytes(), state_.phase == Conduct::Phase::waiting);
    attempt_.reset();
  }

  void wait() {
    std::vector<pollfd> all = {{signals_.descriptor(), POLLIN, 0}};
    double seconds = kIdleSeconds;
    if (attempt_) {
      for (const int descriptor : attempt_->descriptors()) all.push_back({descriptor, POLLIN, 0});
      seconds = tail_ ? kTickSeconds : kWatchSeconds;
    }
    if (const auto moment = next_moment(state_, policy_)) seconds = std::min(seconds, *moment - now());
    if (state_.phase == Conduct::Phase::ended) seconds = 0;
    ::poll(all.data(), all.size(), static_cast<int>(std::ceil(std::max(0.0, seconds) * 1000)));
    narrator_.tick();
  }

  const CommandRun& run_;
  const std::string directory_;
  Clock& clock_;
  rundir::RunLock lock_;
  Signals signals_{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  AttemptLog attempts_;
  Narrator narrator_;
  Conduct state_;
  Policy policy_;
  std::string server_run_id_;
  Limits limits_;  // of the newest attempt
  std::unique_ptr<FileTail> tail_;
  std::unique_ptr<Attempt> attempt_;
  double next_watch_ = 0, next_passing_ = 0, jitter_ = 0, shown_until_ = kAlways;
  int64_t open_attempt_ = 0;  // that begins and has no end yet; 0: none
  bool said_limits_ = false;
};

}  // namespace

int run_command(const CommandRun& run, Clock& clock) {
  hold_standard_streams();
  Runner runner(run, clock);
  try {
    return runner.run();
  } catch (const Error& error) {
    return runner.fail(error);
  }
}

}  // namespace sinew::jobs
