#include "supervise/restart_loop.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/shell_loop.h"
#include "cluster/cluster.h"
#include "http/http.h"

namespace sinew::supervise {
namespace {

constexpr double kWorkerTurnSeconds = 0.05;
constexpr double kOverSeconds = 1;  // seconds between two checks whether the run is over
// Until the worker is known to help the run, the loop asks the coordinator about it every kHelpSeconds. It waits at
// most kHelpAnswerSeconds for an answer.
constexpr double kHelpSeconds = 5, kHelpAnswerSeconds = 1;

// Returns the run's exit code once its supervisor has written it into coordinator.json. If the file cannot be read now,
// returns nullopt; the next check reads it again.
std::optional<int> exit_code_of(const std::string& run_directory) {
  const auto info = cluster::coordinator_info_now(run_directory);
  if (!info || !info->exit_code) return std::nullopt;
  return static_cast<int>(*info->exit_code);
}

bool is_rejoin(const ProcessEnd& end) {
  return end == ProcessEnd{kRejoin, 0};
}

class RestartLoop final : public Shell {
 public:
  RestartLoop(const std::string& run_directory, const std::function<WorkerStart(bool)>& make, Clock& clock,
              const std::function<void(const std::string&)>& say)
      : run_directory_(run_directory), make_(make), clock_(clock), say_(say) {
    if (const auto info = cluster::coordinator_info_now(run_directory)) host_ = http::host_of(info->url);
  }

  void on_signal(int signal) override {
    stop_.add(signal);
    if (!worker_) return;  // turn() sees the request
    if (!std::exchange(asked_, true)) worker_->send(SIGTERM);
    if (stop_.immediate()) worker_->send(SIGKILL);
  }

  std::optional<int> turn() override {
    const double now = clock_.monotonic_seconds();
    if (!worker_) return without_worker(now);
    if (const auto end = worker_->wait()) return ended(*end, now);
    if (now >= next_look_) look(now);
    return std::nullopt;
  }

  std::vector<int> descriptors() const override {
    return worker_ ? std::vector<int>{worker_->descriptor()} : std::vector<int>{};
  }

 private:
  // Checks whether the run is over, and if so ends the worker. A worker that was not a member when the run ended does
  // not learn of the end, and would wait for a coordinator in vain.
  void look(double now) {
    next_look_ = now + kOverSeconds;
    const auto info = cluster::coordinator_info_now(run_directory_);
    if (info && info->exit_code && !over_since_) over_since_ = now;
    if (over_since_) {
      const double since = now - *over_since_;
      if (since >= limits_.linger_seconds + limits_.kill_seconds) {
        worker_->send(SIGKILL);
      } else if (since >= limits_.linger_seconds && !std::exchange(asked_, true)) {
        worker_->send(SIGTERM);
      }
    } else if (info && !life_.helped && now >= next_question_) {
      next_question_ = now + kHelpSeconds;
      ask_whether_it_helps(*info);
    }
  }

  // A worker can write coordinator.json, and must not choose where this process sends requests.
  void ask_whether_it_helps(const cluster::CoordinatorInfo& info) {
    if (!host_.empty() && http::host_of(info.url) != host_) return;
    const auto status = cluster::CoordinatorClient(info.url, info.secret, kHelpAnswerSeconds).status();
    if (!status) return;
    // The worker may have joined by a token, so processes_on() does not have it.
    const bool computes = std::ranges::any_of(status->members, [&, host = host_name()](const auto& member) {
      return member.pid == worker_->pid() && member.host == host && member.phase == "computing";
    });
    if (!computes) return;
    if (!first_step_) first_step_ = status->step();
    life_.helped = status->step() > *first_step_;
  }

  // Returns the exit code of the run, if it is over.
  std::optional<int> over() const {
    const auto code = exit_code_of(run_directory_);
    if (code) say_("the run is over; it ended with exit code " + std::to_string(*code));
    return code;
  }

  std::optional<int> without_worker(double now) {
    if (stop_.requested()) return later_ && !stop_.immediate() ? kResumable : 128 + stop_.signal();
    if (now < restarts_.next_start) return std::nullopt;
    if (later_) {
      if (const auto code = over()) return code;
    }
    try {
      start_.emplace(make_(later_));
      worker_.emplace(start_->process);
    } catch (const Error& error) {
      if (!later_) throw;
      return follow(after_failed_start(now, restarts_, error.what(), limits_));
    }
    later_ = true;
    restarts_.no_worker = {};
    began_ = now;
    asked_ = false;
    over_since_.reset();
    first_step_.reset();
    life_ = {};
    next_look_ = next_question_ = now;
    return std::nullopt;
  }

  std::optional<int> ended(const ProcessEnd& end, double now) {
    worker_.reset();
    if (stop_.immediate()) return 128 + stop_.signal();
    if (over_since_) {  // the worker may have ended only because this loop asked it to
      if (const auto code = over()) return code;
    }
    if (ends_for_good(end)) return end.code;
    if (stop_.requested()) return end.signal == 0 && !is_rejoin(end) ? end.code : kResumable;
    if (const auto code = over()) return code;
    life_.seconds = now - began_;
    return follow(after_end(now, restarts_, end, life_, limits_));
  }

  std::optional<int> follow(const RestartDecision& decision) {
    if (!decision.why.empty()) say_(decision.why);
    return decision.code;
  }

  const std::string& run_directory_;
  const std::function<WorkerStart(bool)>& make_;
  Clock& clock_;
  const std::function<void(const std::string&)>& say_;
  std::string host_;  // the coordinator's host when this loop began
  const SupervisionOptions limits_;
  Restarts restarts_;
  StopRequests stop_;
  std::optional<WorkerStart> start_;
  std::optional<Process> worker_;
  bool later_ = false;  // true: a worker was started before
  bool asked_ = false;
  double began_ = 0, next_look_ = 0, next_question_ = 0;
  WorkerLife life_;
  std::optional<int64_t> first_step_;  // the run's step when the worker was first seen to compute
  // when the end of the run was noticed; a worker that does not notice the end is killed later
  std::optional<double> over_since_;
};

}  // namespace

bool ends_for_good(const ProcessEnd& end) {
  if (end.signal != 0) return false;
  return end.code == kDone || end.code == kBudget || end.code == kUsage || end.code == kResumable;
}

RestartDecision after_end(double now, Restarts& restarts, const ProcessEnd& end, const WorkerLife& life,
                          const SupervisionOptions& options) {
  const bool young = life.seconds < options.young_seconds;
  const bool from_outside = end.signal != 0 && !is_crash(end.signal);
  delay_start(now, restarts.early_exits, restarts.next_start, young && !from_outside, options);
  int64_t row = 0, most = options.most_failures;
  if (end.signal == SIGKILL) {
    row = restarts.kills = young && !life.helped ? restarts.kills + 1 : 1;
    most = options.most_kills;
  } else if (is_limit(end.signal)) {
    LimitDeaths& deaths = restarts.limit_deaths;
    deaths = {end.signal, life.helped ? 0 : deaths.signal == end.signal ? deaths.count + 1 : 1};
    row = deaths.count;
    most = options.most_limit_deaths;
  } else if (!from_outside && !is_rejoin(end)) {
    // A worker that finds no coordinator also ends with an error, but only after no_help_seconds.
    const bool error = end == ProcessEnd{kTrainingError, 0};
    const bool soon = life.seconds < (error ? 2 * options.no_help_seconds : options.young_seconds);
    row = restarts.failures = soon && !life.helped ? restarts.failures + 1 : 1;
  }
  const std::string what = (end.signal != 0 ? "the worker was " : "the worker ") + to_string(end);
  if (row < most) return {std::nullopt, what + "; it is started again"};
  return {kTrainingError, what + ", the last of " + std::to_string(row) + " in a row" +
                              (is_limit(end.signal) ? ", and " + limit_behind(end.signal) + " ends every worker" : "") +
                              ": sinew gives up; if the run goes on, it does so without this worker"};
}

RestartDecision after_failed_start(double now, Restarts& restarts, const std::string& why,
                                   const SupervisionOptions& options) {
  const bool first = restarts.no_worker.count == 0;
  if (failed_for_too_long(now, restarts.no_worker, restarts.next_start, options))
    return {kTrainingError, "no worker can be started: " + why};
  return {std::nullopt, first ? why + "; sinew tries again" : ""};
}

int restart_loop(const std::string& run_directory, const std::function<WorkerStart(bool later)>& make,
                 SignalSource& signals, Clock& clock, const std::function<void(const std::string&)>& say) {
  RestartLoop loop(run_directory, make, clock, say);
  return run_shell(loop, signals, kWorkerTurnSeconds);
}

}  // namespace sinew::supervise
