// The supervisor of a story: supervise/supervision decides, as in supervise/supervisor.cpp; processes are simulated
// ones.
#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "story.h"

namespace sinew::sim {
namespace {

constexpr double kPollSeconds = 0.2, kLoopSeconds = 0.05, kAnswerSeconds = 1;
constexpr int64_t kNumbersOfALife = 1'000'000;

}  // namespace

void Story::begin_supervision(int64_t wanted) {
  supervisors_.push_back(std::make_unique<Process>(scene_.world));
  state_ = supervise::Supervision();
  state_.wanted = wanted_ = wanted;
  lost_.clear();
  polling_ = false;
  supervise();
}

void Story::supervise() {
  reap();
  talk();
  for (const supervise::Action& action : next_actions(scene_.world.now(), state_)) act(action);
  supervisors_.back()->after(kLoopSeconds, [this] { supervise(); });
}

void Story::reap() {
  const double now = scene_.world.now();
  for (const supervise::WorkerState& child : std::vector(state_.workers)) {
    const auto worker =
        std::find_if(workers_.begin(), workers_.end(), [&](const auto& one) { return one->pid == child.pid; });
    if (!(*worker)->end()) continue;
    lost_.push_back({child.pid, to_string(*(*worker)->end())});
    worker_ended(now, state_, child.pid, *(*worker)->end());
  }
  const auto& office = scene_.post.office;
  if (!office || office->pid != state_.coordinator.pid) return;
  if (!office->process.alive()) return end_coordinator({0, SIGKILL}, std::nullopt);
  if (const auto over = office->over()) end_coordinator({static_cast<int>(*over), 0}, over);
}

void Story::end_coordinator(ProcessEnd end, std::optional<int64_t> finished) {
  scene_.post.office->die();
  scene_.post.office.reset();
  coordinator_ended(scene_.world.now(), state_, end, finished);
}

void Story::post(const std::string& path, const std::string& body, Answer answer) {
  scene_.post.call(0, *supervisors_.back(), body.empty() ? "GET" : "POST", path, body, kAnswerSeconds,
                   std::move(answer));
}

// A report that fails is repeated at the next poll.
void Story::talk() {
  const double now = scene_.world.now();
  if (polling_ || now - polled_ < kPollSeconds) return;
  polling_ = true;
  polled_ = now;
  for (const Lost& lost : std::exchange(lost_, {})) {
    const nlohmann::json body = {{"pid", lost.pid}, {"host", "here"}, {"why", lost.why}};
    post("/v2/lost", body.dump(), [this, lost](const auto& response) {
      if (!response) lost_.push_back(lost);
    });
  }
  post("/v2/status", "", [this](const auto& response) {
    polling_ = false;
    if (!response || response->status != 200) return;
    const auto status = cluster::status_of_json(response->body);
    const auto computing = std::ranges::count(status.members, "computing", &cluster::MemberStatus::phase);
    coordinator_answered(scene_.world.now(), state_, status.wanted, status.step(), status.finished, computing,
                         cluster::processes_on("here", status));
  });
}

void Story::act(const supervise::Action& action) {
  using Kind = supervise::Action::Kind;
  const double now = scene_.world.now();
  switch (action.kind) {
    case Kind::start_coordinator: return start_coordinator();
    case Kind::start_worker:
      workers_.push_back(std::make_unique<Worker>(scene_, ++pids_));
      return worker_started(now, state_, ++started_, static_cast<pid_t>(pids_));
    case Kind::send: return send(action.pid, action.signal);
    case Kind::request_stop: return scene_.judge.complain("the supervisor wants to stop the run");
    case Kind::finish:
      scene_.judge.ends(action.code);
      scene_.world.say("the run is over with exit code " + std::to_string(action.code) + " " + action.why);
      return scene_.world.stop();
  }
}

// The coordinator reserves its numbers first and listens a little later.
void Story::start_coordinator() {
  const int64_t pid = ++pids_;
  coordinator_started(scene_.world.now(), state_, static_cast<pid_t>(pid));
  cluster::CoordinatorOptions options;
  options.cluster.wanted = state_.wanted;
  options.at_least = Generation(coordinators_ * kNumbersOfALife);
  options.first_id = MemberId(coordinators_ * kNumbersOfALife);
  options.last_view = last_view_;
  options.on_view = [this](const cluster::View& view) { last_view_ = view; };
  options.log = [this](const std::string& line) { scene_.world.say("coordinator: " + line); };
  ++coordinators_;
  supervisors_.back()->after(scene_.world.random.uniform(0.03, 0.3), [this, pid, options] {
    if (state_.coordinator.pid == pid) scene_.post.office = std::make_shared<Office>(scene_.world, pid, options);
  });
}

void Story::send(int64_t pid, int signal) {
  const auto& office = scene_.post.office;
  if (office && office->pid == pid) return end_coordinator({0, signal}, std::nullopt);
  for (const auto& worker : workers_) {
    if (worker->pid != pid) continue;
    scene_.world.say("process " + std::to_string(pid) + " is sent " + signal_name(signal));
    if (signal == SIGKILL) worker->kill();
    if (signal == SIGTERM) worker->ask_to_leave();
  }
}

}  // namespace sinew::sim
