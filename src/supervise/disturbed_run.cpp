#include "supervise/disturbed_run.h"

#include <csignal>
#include <utility>

namespace sinew::supervise {
namespace {

constexpr double kChaosAnswerSeconds = 2;

}  // namespace

DisturbedRun::DisturbedRun(const ProcessOptions& process, const std::string& directory, std::vector<ChaosEvent> plan,
                           int64_t steps)
    : directory_(directory), plan_(std::move(plan)), steps_(steps), process_(process) {}

const std::optional<ProcessEnd>& DisturbedRun::ended() {
  if (!end_) end_ = process_.wait();
  return end_;
}

void DisturbedRun::look(double now, const std::function<void(const std::string&)>& say) {
  if (continues_ && now >= *continues_) {
    for (const pid_t pid : paused_) ::kill(pid, SIGCONT);
    paused_.clear();
    continues_.reset();
    say("         the stopped worker continues");
  }
  if (next_ == plan_.size()) return;
  const auto answer = status();
  if (!answer || answer->step() == 0) return;
  if (!began_) began_ = now;
  const ChaosEvent& event = plan_[next_];
  if (!is_due(plan_, next_, now - *began_, answer->step(), steps_) || !apply(event, *answer)) return;
  const std::string step = std::to_string(answer->step());
  say("step " + std::string(step.size() < 4 ? 4 - step.size() : 0, ' ') + step + ": " + to_string(event));
  if (event.kind == ChaosEvent::Kind::pause_worker) continues_ = now + event.seconds;
  ++next_;
}

std::optional<cluster::CoordinatorStatus> DisturbedRun::status() const {
  const auto file = cluster::read_coordinator_info(directory_);
  if (!file || file->url.empty()) return std::nullopt;
  return cluster::CoordinatorClient(file->url, file->secret, kChaosAnswerSeconds).status();
}

bool DisturbedRun::apply(const ChaosEvent& event, const cluster::CoordinatorStatus& status) {
  const std::vector<pid_t> pids = workers_of(status);
  const auto picked = [&](size_t offset) { return pids[(event.pick + offset) % pids.size()]; };
  if (pids.empty() && event.kind != ChaosEvent::Kind::kill_coordinator) return false;
  const auto file = cluster::read_coordinator_info(directory_);
  switch (event.kind) {
    case ChaosEvent::Kind::kill_worker: return ::kill(picked(0), SIGKILL) == 0;
    case ChaosEvent::Kind::kill_two: {
      const bool first = ::kill(picked(0), SIGKILL) == 0;
      return (pids.size() < 2 || ::kill(picked(1), SIGKILL) == 0) && first;
    }
    case ChaosEvent::Kind::pause_worker: paused_.insert(picked(0)); return ::kill(picked(0), SIGSTOP) == 0;
    case ChaosEvent::Kind::kill_coordinator:
      return file && file->pid > 1 && ::kill(static_cast<pid_t>(file->pid), SIGKILL) == 0;
    case ChaosEvent::Kind::scale:
      return file && cluster::CoordinatorClient(file->url, file->secret, kChaosAnswerSeconds).scale(event.workers);
  }
  return false;
}

// Returns those workers that are children of this run's supervisor. Chaos must never signal a process of another run or
// machine.
std::vector<pid_t> DisturbedRun::workers_of(const cluster::CoordinatorStatus& status) const {
  std::vector<pid_t> pids;
  for (const cluster::MemberStatus& member : status.members) {
    const auto pid = static_cast<pid_t>(member.pid);
    const auto facts = pid > 1 ? process_facts(pid) : std::nullopt;
    if (facts && facts->parent == process_.pid()) pids.push_back(pid);
  }
  return pids;
}

}  // namespace sinew::supervise
