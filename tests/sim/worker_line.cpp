// Exchanges the messages of a simulated worker with the coordinator and with other members. In the product,
// cluster::Client and group::Member do this on threads of their own.
#include <algorithm>
#include <csignal>

#include "worker.h"

namespace sinew::sim {
namespace {

constexpr double kHeartbeatSeconds = 2, kUpdatesSeconds = 10, kFirstPause = 0.02,
                 kLongestPause = 0.25;  // as in cluster::Client

}  // namespace

Worker::Worker(Scene& scene, int64_t pid_given)
    : pid(pid_given),
      process(scene.world),
      scene_(scene),
      pace_(scene.world.random.uniform(kLeastPace, kMostPace)),
      lanes_(static_cast<int>(1 + scene.world.random.below(3))) {
  link::Events events;
  events.on_frame = [this](MemberId from, link::Frame frame) { guarded([&] { on_frame(from, std::move(frame)); }); };
  events.on_lost = [this](MemberId peer, const std::string& why) {
    scene_.world.say("process " + std::to_string(pid) + " lost its link to member " + std::to_string(peer.value) +
                     ": " + why);
    report([&](cluster::MemberReport& report) { report.lost.emplace_back(peer, why); });
  };
  links_ = scene.network.join(process, std::move(events));
  address_ = client_.address = links_->address();
  client_.host = "here";
  client_.pid = pid;
  client_.identity = {"job", "machine", "probe"};
  client_.standby.emplace();
  membership_ = std::make_unique<cluster::MembershipClient>(client_, "life-" + std::to_string(pid));
  later(scene.world.random.uniform(0.2, 0.8), [this] { join(); });
}

Worker::~Worker() {
  process.die();
  while (!threads_.empty()) threads_.pop_back();
}

void Worker::later(double seconds, Event event) {
  process.after(seconds, [this, event = std::move(event)] { guarded(event); });
}

void Worker::guarded(const Event& event) {
  try {
    event();
  } catch (const group::Fenced& ended) {
    end_process({static_cast<int>(finished_.value_or(kRejoin)), 0}, ended.what());
  } catch (const Error& error) {
    if (group_)  // a worker without a group may fail, because the coordinator refuses it after the run's end
      scene_.judge.complain("process " + std::to_string(pid) + ": " + error.what());
    end_process({kTrainingError, 0}, error.what());
  }
}

void Worker::end_process(ProcessEnd end, const std::string& why) {
  if (end_) return;
  end_ = end;
  scene_.world.say("process " + std::to_string(pid) + " " + to_string(end) + ": " + why);
  process.die();
  end_coordinator(end);
  for (auto thread = threads_.rbegin(); thread != threads_.rend(); ++thread) (*thread)->cancel();
  scene_.network.died(address_);
  if (computed_ && end.code == kRejoin && !scene_.judge.is_disturbed(pid) &&
      !scene_.judge.is_over(trainer_->origin->attempt) &&
      !scene_.judge.result_is_gone(trainer_->origin->attempt, in_collective_))
    scene_.judge.complain("process " + std::to_string(pid) + " computed, was not disturbed, and was put out: " + why);
  scene_.judge.disturbed(pid);
}

void Worker::kill() {
  end_process({0, SIGKILL}, "killed");
}

void Worker::stop() {
  scene_.judge.disturbed(pid);
  process.stop();
  if (elected_) elected_->process.stop();
  scene_.network.stopped(address_);
}

void Worker::change_memory() {
  if (!trainer_ || !trainer_->origin || role_->joining() || end_ || scene_.judge.is_disturbed(pid)) return;
  scene_.world.say("-- memory of process " + std::to_string(pid) + " changes");
  scene_.judge.memory_changes(pid, trainer_->origin->attempt, trainer_->state().step.value);
  trainer_->change_memory(scene_.world.random);
}

void Worker::ask_to_leave() {
  scene_.judge.disturbed(pid);
  ++stop_signals_;
}

void Worker::go_on() {
  if (!process.alive()) return;
  process.go_on();
  if (elected_) elected_->process.go_on();
}

// ---- the coordinator -----------------------------------------------------------------------------------------------

void Worker::join() {
  scene_.post.call(pid, process, "POST", "/v2/join", membership_->join_request(), kHeartbeatSeconds,
                   [this](const auto& response) {
                     guarded([&] {
                       if (response && membership_->joined(*response, scene_.world.now()))
                         return become_member(membership_->id());
                       later(heartbeat_pause_, [this] { join(); });
                       heartbeat_pause_ = std::min(2 * heartbeat_pause_, kLongestPause);
                     });
                   });
}

void Worker::become_member(MemberId id) {
  scene_.judge.given(id);
  scene_.world.say("process " + std::to_string(pid) + " is member " + std::to_string(id.value));
  links_->set_identity(id);
  group::GroupOptions options;
  options.piece_floats = 1024;
  options.merge = [this](std::string_view left, std::string_view right) {
    Fiber* const thread = Fiber::current();
    if (thread != nullptr && scene_.world.chance(0.02)) thread->sleep(scene_.world.random.uniform(0, 0.005));
    return group::simulation::joined(left, right);
  };
  options.on_lost = [this](MemberId peer, const std::string& why) {
    report([&](cluster::MemberReport& report) { report.lost.emplace_back(peer, why); });
  };
  options.on_wrong = [this](MemberId wrong, const std::string& why) {
    scene_.world.say("process " + std::to_string(pid) + " reports: " + why);
    scene_.judge.blames(wrong);
    report([&](cluster::MemberReport& report) { report.wrong.emplace_back(wrong, why); });
  };
  group_ = std::make_unique<group::Group>(id, *links_, options, scene_.world);
  role_.emplace(id);
  start_thread([this] { run(); });
  speak();
  listen();
  stand_by();
}

void Worker::speak() {
  if (speaking_ || membership_->over()) return;
  speaking_ = true;
  dirty_ = false;
  const double sent = scene_.world.now();
  scene_.post.call(pid, process, "POST", "/v2/heartbeat", membership_->heartbeat(), kHeartbeatSeconds,
                   [this, sent](const auto& response) {
                     if (response && take(*response, sent)) {
                       heartbeat_pause_ = kFirstPause;
                       speaking_ = false;
                       if (dirty_) return speak();
                       later(client_.pulse_seconds, [this, pulse = ++pulse_] {
                         if (pulse == pulse_) speak();
                       });
                       return;
                     }
                     if (const auto out = membership_->failed("no answer", scene_.world.now()))
                       out_ = *out, group_->fence(*out), wake();
                     later(heartbeat_pause_, [this] { speaking_ = false, speak(); });
                     heartbeat_pause_ = std::min(2 * heartbeat_pause_, kLongestPause);
                   });
}

void Worker::listen() {
  if (membership_->over()) return;
  const double sent = scene_.world.now();
  scene_.post.call(pid, process, "GET", membership_->updates_target(), "", kUpdatesSeconds,
                   [this, sent](const auto& response) {
                     const bool answered = response && take(*response, sent);
                     if (answered && !membership_->introducing()) {
                       updates_pause_ = kFirstPause;
                       return listen();
                     }
                     later(updates_pause_, [this] { listen(); });
                     updates_pause_ = std::min(2 * updates_pause_, kLongestPause);
                   });
}

bool Worker::take(const http::Response& response, double sent) {
  const cluster::ReplyActions actions = membership_->receive(response, sent, scene_.world.now());
  if (actions.understood && response.body.find("\"lease\":true") != std::string::npos && sent > confirmed_) {
    confirmed_ = sent;
    lease_term_ = membership_->term();
  }
  dirty_ = dirty_ || actions.send_heartbeat;
  if (actions.view) act_on(*actions.view);
  if (actions.requests) requests_ = *actions.requests;
  if (actions.finished) finished_ = actions.finished;
  const std::string over = actions.fenced.value_or(actions.finished ? "the run is over" : "");
  if (!over.empty() && out_.empty()) out_ = over, group_->fence(over);
  wake();
  return actions.understood;
}

void Worker::act_on(const cluster::View& view) {
  scene_.judge.view(view);
  newest_ = view;
  group_->adopt(view);
  role_->take(view);
  report([&](cluster::MemberReport& report) { role_->report_view(report); });
}

// ---- other members -------------------------------------------------------------------------------------------------

void Worker::on_frame(MemberId from, link::Frame frame) {
  if (frame.kind < group::kStateBegin) {
    group_->on_frame(from, std::move(frame));
  } else if (const std::string trouble = received_.take(frame); !trouble.empty()) {
    scene_.judge.complain("process " + std::to_string(pid) + " was sent " + trouble);
  }
  wake();
}

void Worker::send_state(std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot, int64_t collective, uint64_t history,
                        MemberId joiner) {
  group::StateSender frames(*snapshot, collective, history);
  while (auto frame = frames.next()) {
    if (role_->joins(joiner)) links_->send(joiner, std::move(*frame));
  }
}

}  // namespace sinew::sim
