#include "supervisor.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

namespace sinew::sim {
namespace {

constexpr double kTurnSeconds = 0.05, kAnswerSeconds = 1;  // as in supervise/supervisor.cpp and coordinator_link.cpp
constexpr const char* kHost = "here";

// No user sends a signal to the supervisors of a story.
class NoSignals final : public SignalSource {
 public:
  int descriptor() const override { return -1; }
  int next() override { return 0; }
};

supervise::SupervisorShellOptions shell_options(Scene& scene, int64_t workers) {
  supervise::SupervisorShellOptions options;
  options.workers = workers;
  options.host = kHost;
  options.say = [&scene](const std::string& sentence) { scene.world.say("supervisor: " + sentence); };
  return options;
}

}  // namespace

Supervisor::Supervisor(Scene& scene, RunOfStory& run, int64_t workers)
    : process(scene.world),
      scene_(scene),
      run_(run),
      shell_(shell_options(scene, workers), *this, *this, scene.world),
      thread_(std::make_unique<Fiber>(process, [this] { supervise(); })) {
  scene.files.lock_holder = &process;
  process.after(0, [this] { thread_->resume(); });
}

void Supervisor::supervise() {
  NoSignals signals;
  while (true) {
    if (const auto code = shell_turn(shell_, signals)) {
      if (superseded_) {
        scene_.world.say("the supervisor has stepped down");
        return process.after(0, [this] { die(); });
      }
      scene_.world.say("the run is over with exit code " + std::to_string(*code));
      return scene_.world.stop();
    }
    Fiber::current()->sleep(kTurnSeconds);
  }
}

void Supervisor::die() {
  process.die();
  thread_->cancel();
}

void Supervisor::post(const std::string& path, const std::string& body, Answer answer) {
  scene_.post.call(0, process, body.empty() ? "GET" : "POST", path, body, kAnswerSeconds, std::move(answer));
}

// Calls the coordinator that this supervisor started. The response arrives as an event of this process, so it never
// arrives after the fiber has ended.
std::optional<http::Response> Supervisor::call(const std::string& path, const std::string& body) {
  bool answered = false;
  std::optional<http::Response> response;
  scene_.post.call_at(office_, 0, process, body.empty() ? "GET" : "POST", path, body, kAnswerSeconds,
                      [&, thread = thread_.get()](std::optional<http::Response> given) {
                        response = std::move(given);
                        answered = true;
                        thread->resume();
                      });
  while (!answered) Fiber::current()->wait();
  return response;
}

// ---- processes -----------------------------------------------------------------------------------------------------

// A new coordinator reserves its range of generations and member ids at once, but listens only after a random delay.
pid_t Supervisor::start_coordinator(int64_t workers) {
  const int64_t pid = ++run_.pids;
  const cluster::CoordinatorOptions options = scene_.begin_coordinator(workers);
  coordinator_ = static_cast<pid_t>(pid);
  coordinator_end_.reset();
  recorded_end_.reset();
  office_.reset();
  process.after(scene_.world.random.uniform(0.03, 0.3), [this, pid, options] {
    if (coordinator_ != pid || coordinator_end_) return;
    office_ = scene_.listen(pid, options);
    if (!office_) end_coordinator({kRejoin, 0});
  });
  return coordinator_;
}

pid_t Supervisor::start_worker(const std::string&, bool) {
  run_.workers.push_back(std::make_unique<Worker>(scene_, ++run_.pids));
  children_.push_back(run_.workers.back().get());
  return static_cast<pid_t>(run_.pids);
}

std::vector<supervise::RunProcesses::EndedWorker> Supervisor::take_ended_workers() {
  std::vector<EndedWorker> ended;
  std::erase_if(children_, [&](const Worker* worker) {
    if (!worker->end()) return false;
    // Reports no activity: the story may kill three workers at one shard, and the supervisor would call it deadly.
    ended.push_back({static_cast<pid_t>(worker->pid), *worker->end(), {}});
    return true;
  });
  return ended;
}

std::optional<ProcessEnd> Supervisor::take_ended_coordinator() {
  if (office_ && !coordinator_end_) {
    if (!office_->process.alive()) {
      end_coordinator({0, SIGKILL});
    } else if (office_->superseded()) {
      end_coordinator({kRejoin, 0});
    } else if (const auto over = office_->over()) {
      recorded_end_ = *over;
      end_coordinator({static_cast<int>(*over), 0});
    }
  }
  superseded_ = superseded_ || coordinator_end_ == ProcessEnd{kRejoin, 0};
  return std::exchange(coordinator_end_, std::nullopt);
}

void Supervisor::end_coordinator(ProcessEnd end) {
  coordinator_end_ = end;
  if (!office_) return;  // the coordinator does not listen yet
  office_->die();
  if (scene_.post.office == office_) scene_.post.office.reset();
  office_.reset();
}

std::vector<LaneActivity> Supervisor::activity(pid_t worker) const {
  const auto found = std::ranges::find(children_, worker, [](const Worker* one) { return one->pid; });
  return found == children_.end() ? std::vector<LaneActivity>() : (*found)->activity();
}

bool Supervisor::runs(pid_t pid) const {
  const auto found = std::ranges::find(children_, pid, [](const Worker* one) { return one->pid; });
  return found != children_.end() && (*found)->process.alive() && !(*found)->process.stopped();
}

void Supervisor::send(pid_t pid, int signal) {
  if (pid == coordinator_) return end_coordinator({0, signal});
  for (Worker* worker : children_) {
    if (worker->pid != pid || worker->end()) continue;
    scene_.world.say("process " + std::to_string(pid) + " is sent " + signal_name(signal));
    if (signal == SIGTERM) worker->ask_to_leave();
    if (signal == SIGKILL) worker->kill();
    if (signal == SIGABRT) scene_.judge.complain("a worker of this story never hangs, but the supervisor aborts one");
  }
}

void Supervisor::kill_all() {
  for (Worker* worker : children_) {
    if (!worker->end()) worker->kill();
  }
  children_.clear();
  end_coordinator({0, SIGKILL});
}

// ---- calls to the coordinator --------------------------------------------------------------------------------------

bool Supervisor::connect(pid_t coordinator) {
  connected_ = connected_ || (office_ && office_->pid == coordinator);
  return connected_;
}

std::optional<cluster::CoordinatorStatus> Supervisor::status() {
  const auto response = call("/v2/status", "");
  if (!response || response->status != 200) return std::nullopt;
  return cluster::status_of_json(response->body);
}

bool Supervisor::lost(pid_t worker, const std::string& why) {
  const nlohmann::json body = {{"pid", worker}, {"host", kHost}, {"why", why}};
  return call("/v2/lost", body.dump()).has_value();
}

bool Supervisor::control(const std::string& kind, double, const std::string& reason) {
  scene_.judge.complain("the supervisor asks the coordinator for " + kind + ": " + reason);
  return false;
}

std::string Supervisor::record_end(int exit_code) {
  scene_.files.exit_code = exit_code;
  scene_.judge.ends(exit_code);
  return "";
}

}  // namespace sinew::sim
