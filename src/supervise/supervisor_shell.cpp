#include "supervise/supervisor_shell.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "base/process.h"

namespace sinew::supervise {
namespace {

constexpr double kPollSeconds = 0.2;   // seconds between two questions to the coordinator
constexpr double kReportSeconds = 5;   // after this time the group has noticed a lost worker by itself
constexpr double kLookSeconds = 1;     // seconds between two checks of the run's directory
constexpr double kWatchSeconds = 0.5;  // seconds between two checks of the workers' activity
// Once the calls of a turn to the coordinator have taken this time together, the turn makes no further call. A
// coordinator that does not answer then holds up a turn for one call only, and the loop sees a second stop request
// soon.
constexpr double kCallSeconds = 0.1;

// Calls `start`. Returns why the process could not be started, or nullopt if it was started. For the first process of
// its kind (`later` is false) throws the error, because the user has to correct something. Later errors are returned,
// because the processes that already run must survive them.
std::optional<std::string> attempt(const std::function<void()>& start, bool later) {
  try {
    start();
  } catch (const Error& error) {
    if (!later) throw;
    return error.what() + (error.hint.empty() ? "" : " (" + error.hint + ")");
  }
  return std::nullopt;
}

}  // namespace

SupervisorShell::SupervisorShell(SupervisorShellOptions options, RunProcesses& processes, CoordinatorLink& coordinator,
                                 Clock& clock)
    : options_(std::move(options)), processes_(processes), coordinator_(coordinator), clock_(clock) {
  state_.wanted = options_.workers;
  if (!options_.run_directory.empty()) state_.run = shell_quoted(options_.run_directory);
  watch_options_.least_seconds = options_.hang_seconds;
}

void SupervisorShell::say(const std::string& sentence) const {
  if (!sentence.empty() && options_.say) options_.say(sentence);
}

void SupervisorShell::on_signal(int signal) {
  if (signal == SIGUSR1) {
    checkpoint_requested_ = true;
    return;
  }
  const bool first = !state_.stop_since;
  stop_requested(now(), state_, signal);
  if (first) say("stopping after this step; once more stops at once");
}

std::optional<int> SupervisorShell::turn() {
  turn_began_ = now();
  call_seconds_ = 0;
  if (const auto code = look_at_place()) return code;
  reap();
  talk();
  watch();
  for (const Action& action : next_actions(now(), state_)) {
    if (const auto code = act(action)) return code;
  }
  return std::nullopt;
}

void SupervisorShell::reap() {
  for (const RunProcesses::EndedWorker& ended : processes_.take_ended_workers()) {
    lost_.push_back({ended.pid, to_string(ended.end), now(), {}});
    if (!state_.over) last_error_ = ended.error;
    say(worker_ended(now(), state_, ended.pid, ended.end, in_flight(ended.activity), {},
                     ended.error ? ended.error->what : ""));
  }
  if (const auto end = processes_.take_ended_coordinator()) {
    coordinator_.disconnect();
    say(coordinator_ended(now(), state_, *end, coordinator_.recorded_end(state_.coordinator.pid)));
  }
}

// Returns the answer of `call`, or an empty answer if this turn may make no further call.
template <typename Call>
auto SupervisorShell::ask(const Call& call) -> decltype(call()) {
  if (call_seconds_ >= kCallSeconds) return {};
  const double began = now();
  auto answer = call();
  call_seconds_ += now() - began;
  return answer;
}

// Reports lost workers and requests to the coordinator, and asks it for the group's status. A call that fails is
// repeated at the next poll. A call for which this turn has no time left is made in the next turn. New losses come
// first, because the group waits for them. Losses that an earlier turn failed to report come after the question for the
// status.
void SupervisorShell::talk() {
  if (state_.coordinator.pid == 0 || !coordinator_.connect(state_.coordinator.pid)) return;
  report_losses(false);
  if (now() < next_poll_ || call_seconds_ >= kCallSeconds) return;
  const auto status = ask([&] { return coordinator_.status(); });
  if (checkpoint_requested_ && ask([&] { return coordinator_.control("checkpoint", 0, "SIGUSR1"); }))
    checkpoint_requested_ = false;
  report_losses(true);
  next_poll_ = now() + kPollSeconds;
  if (!status) return;
  const int64_t asked = std::max<int64_t>(1, status->wanted - options_.elsewhere);
  const int64_t here = std::min(asked, options_.most);
  if (asked > here && !std::exchange(said_most_, true)) {
    say("the coordinator wants " + std::to_string(asked) + " workers here, but a confined run keeps at most the " +
        std::to_string(here) + " with which it began, because their memory was divided then");
  }
  const auto computing = std::ranges::count_if(
      status->members, [](const auto& member) { return member.phase == "computing" && member.token.empty(); });
  // What a member with a join token reports may be a lie. Its files are not those of the run anyway. So neither its
  // steps count, nor that it computes.
  const int64_t step = status->own_step();
  if (step > state_.step) last_error_.reset();
  say(coordinator_answered(now(), state_, here, step, status->finished, computing, processes_here(*status)));
}

// Reports new losses, or, if `again` is set, losses that an earlier turn failed to report.
void SupervisorShell::report_losses(bool again) {
  std::erase_if(lost_, [&](Lost& lost) {
    if (now() - lost.since > kReportSeconds) return true;
    const bool due = again ? lost.tried && *lost.tried < turn_began_ : !lost.tried;
    if (!due || call_seconds_ >= kCallSeconds) return false;
    lost.tried = now();
    return ask([&] { return coordinator_.lost(lost.pid, lost.why); });
  });
}

// Returns the processes of this machine that are not suspended. A suspended process computes nothing, but the
// coordinator notices that only a second later.
cluster::LocalProcesses SupervisorShell::processes_here(const cluster::CoordinatorStatus& status) const {
  cluster::LocalProcesses here = cluster::processes_on(options_.host, status);
  std::erase_if(here.computing, [&](pid_t pid) { return !processes_.runs(pid); });
  return here;
}

// Finds the workers that hold up a run that makes no progress.
void SupervisorShell::watch() {
  if (now() < next_watch_ || state_.over) return;
  next_watch_ = now() + kWatchSeconds;
  std::vector<WatchedWorker> watched;
  for (const WorkerState& worker : state_.workers)
    watched.push_back({worker.pid, name_of(worker), !processes_.runs(worker.pid), processes_.activity(worker.pid)});
  const Standstill found = look_for_standstill(now(), watchdog_, state_.step, watched, watch_options_);
  say(found.sentence);
  for (const auto& holder : found.to_end) worker_hangs(state_, holder.pid, holder.why);
}

std::optional<int> SupervisorShell::act(const Action& action) {
  if (action.kind != Action::Kind::finish) say(action.why);
  switch (action.kind) {
    case Action::Kind::start_coordinator: {
      const auto start = [&] {
        coordinator_started(now(), state_, processes_.start_coordinator(state_.wanted + options_.elsewhere));
        next_poll_ = 0;
      };
      if (const auto why = attempt(start, state_.begun)) say(coordinator_not_started(now(), state_, *why));
      break;
    }
    case Action::Kind::start_worker:
      if (const auto why = attempt([&] { start_worker(); }, started_ > 0)) say(worker_not_started(now(), state_, *why));
      break;
    case Action::Kind::send: processes_.send(action.pid, action.signal); break;
    case Action::Kind::request_stop:
      state_.stop_delivered =
          ask([&] { return coordinator_.control("stop", kResumable, stopped_by(state_.stop.signal())); });
      break;
    case Action::Kind::finish: return finish(action);
  }
  return std::nullopt;
}

void SupervisorShell::start_worker() {
  const pid_t pid = processes_.start_worker(coordinator_.url(), started_ >= options_.workers);
  worker_started(now(), state_, ++started_, pid);
  if (options_.log) options_.log("started worker " + std::to_string(started_) + " (pid " + std::to_string(pid) + ")");
}

// Ends the run if its directory is lost. Writes no record, because another run may have the path now.
std::optional<int> SupervisorShell::look_at_place() {
  if (!options_.place_lost || now() < next_look_) return std::nullopt;
  next_look_ = now() + kLookSeconds;
  const std::string why = options_.place_lost();
  if (why.empty()) return std::nullopt;
  processes_.kill_all();
  say("the run is over, because " + why + " [RUN_DIRECTORY_LOST]; resume it where its directory is now, or restore it");
  return kTrainingError;
}

// Returns the exit code of a run that says it ended well. The leader writes the report before it ends the run, so a run
// without the report has no result.
int SupervisorShell::confirmed_end(int code) const {
  if ((code != kDone && code != kBudget) || !options_.reported_end) return code;
  if (const auto reported = options_.reported_end()) return *reported;
  say("a worker said that the run ended with exit code " + std::to_string(code) +
      ", but no worker has written its report in the run directory, so the run has failed");
  return kTrainingError;
}

int SupervisorShell::finish(const Action& action) {
  say(action.why);
  processes_.kill_all();
  if (options_.place_lost && !options_.place_lost().empty()) return action.code;
  int code = action.code;
  // If the run ended by itself just when the request to stop reached its processes, the exit code in its report counts.
  const bool stopped = code == kResumable || code > 128;
  if (stopped && options_.reported_end) code = options_.reported_end().value_or(code);
  code = confirmed_end(code);
  if (state_.coordinator.superseded) return code;  // the records are those of the other coordinator
  // A failing disk must not change the run's exit code.
  if (const std::string trouble = coordinator_.record_end(code); !trouble.empty())
    say("coordinator.json does not say how the run ended: " + trouble);
  if (options_.log) options_.log("the run is over with exit code " + std::to_string(code));
  return code;
}

}  // namespace sinew::supervise
