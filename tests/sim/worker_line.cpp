// A worker's talk with the coordinator and with other members: what Client and Member do on threads of their own.
#include <algorithm>
#include <csignal>

#include "worker.h"

namespace sinew::sim {
namespace {

constexpr double kWordSeconds = 2, kNewsSeconds = 10, kFirstPause = 0.02, kLongestPause = 0.25;  // as the Client's

}  // namespace

Worker::Worker(Scene& scene, int64_t pid_given)
    : pid(pid_given), process(scene.world), scene_(scene), pace_(scene.world.random.uniform(kLeastPace, kMostPace)) {
  lanes_.resize(1 + scene.world.random.below(3));
  link::Events events;
  events.on_frame = [this](MemberId from, link::Frame frame) { guarded([&] { on_frame(from, std::move(frame)); }); };
  events.on_lost = [this](MemberId peer, const std::string& why) {
    scene_.world.say("process " + std::to_string(pid) + " lost its link to member " + std::to_string(peer.value) +
                     ": " + why);
    tell([&](cluster::Told& told) { told.lost.emplace_back(peer, why); });
  };
  links_ = scene.network.join(process, std::move(events));
  address_ = client_.address = links_->address();
  client_.host = "here";
  client_.pid = pid;
  client_.identity = {"job", "machine", "probe"};
  talk_ = std::make_unique<cluster::Conversation>(client_, "life-" + std::to_string(pid));
  later(scene.world.random.uniform(0.2, 0.8), [this] { join(); });
}

void Worker::later(double seconds, Event event) {
  process.after(seconds, [this, event = std::move(event)] { guarded(event); });
}

void Worker::guarded(const Event& event) {
  try {
    event();
  } catch (const group::PutOut& ended) {
    end_life({finished_ ? static_cast<int>(*finished_) : leaving_ ? kResumable : kRejoin, 0}, ended.what());
  } catch (const Error& error) {
    if (stage_ != Stage::joining)  // who comes when the run is over is told so
      scene_.judge.complain("process " + std::to_string(pid) + ": " + error.what());
    end_life({kTrainingError, 0}, error.what());
  }
}

void Worker::end_life(ProcessEnd end, const std::string& why) {
  if (end_) return;
  end_ = end;
  stage_ = Stage::over;
  scene_.world.say("process " + std::to_string(pid) + " " + to_string(end) + ": " + why);
  process.die();
  scene_.network.died(address_);
  if (computed_ && end.code == kRejoin && !scene_.judge.is_disturbed(pid) &&
      !scene_.judge.root_is_gone(training_.attempt, training_.step))
    scene_.judge.complain("process " + std::to_string(pid) + " computed, was not disturbed, and was put out: " + why);
  scene_.judge.disturbed(pid);
}

void Worker::kill() {
  end_life({0, SIGKILL}, "killed");
}

void Worker::stop() {
  scene_.judge.disturbed(pid);
  process.stop();
  scene_.network.stopped(address_);
}

void Worker::ask_to_leave() {
  scene_.judge.disturbed(pid);
  asked_to_leave_ = true;
}

void Worker::go_on() {
  if (process.alive()) process.go_on();
}

// ---- the coordinator -----------------------------------------------------------------------------------------------

void Worker::join() {
  scene_.post.call(pid, process, "POST", "/v1/join", talk_->join_call(), kWordSeconds, [this](const auto& response) {
    guarded([&] {
      if (response && talk_->joined(*response, scene_.world.now())) return seat_at(talk_->id());
      later(word_pause_, [this] { join(); });
      word_pause_ = std::min(2 * word_pause_, kLongestPause);
    });
  });
}

void Worker::seat_at(MemberId id) {
  scene_.judge.given(id);
  scene_.world.say("process " + std::to_string(pid) + " is member " + std::to_string(id.value));
  links_->set_identity(id);
  group::GroupOptions options;
  options.piece_floats = 1024;
  options.merge = [this](std::string_view left, std::string_view right) {
    constexpr int kDeep = 6;  // calls of run() on the stack
    if (scene_.world.waiting() < kDeep && scene_.world.chance(0.02))
      process.wait(scene_.world.random.uniform(0, 0.005));
    return group::simulation::joined(left, right);
  };
  options.on_lost = [this](MemberId peer, const std::string& why) {
    tell([&](cluster::Told& told) { told.lost.emplace_back(peer, why); });
  };
  group_ = std::make_unique<group::Group>(id, *links_, options, scene_.world);
  place_.emplace(id);
  stage_ = Stage::waits_for_seat;
  checkpoint::WriterOptions writer;
  writer.root = "/run/checkpoints";
  writer.may_write = [this] { return place_->lead() && talk_->leased(scene_.world.now(), 1.0); };
  writer.thread = false;
  writer_ = std::make_unique<checkpoint::Writer>(scene_.disk, writer, scene_.world);
  speak();
  listen();
}

void Worker::speak() {
  if (speaking_ || talk_->over()) return;
  speaking_ = true;
  dirty_ = false;
  const double sent = scene_.world.now();
  scene_.post.call(pid, process, "POST", "/v1/word", talk_->word(), kWordSeconds, [this, sent](const auto& response) {
    if (response && take(*response, sent)) {
      word_pause_ = kFirstPause;
      speaking_ = false;
      if (dirty_) return speak();
      later(client_.pulse_seconds, [this, pulse = ++pulse_] {
        if (pulse == pulse_) speak();
      });
      return;
    }
    if (const auto out = talk_->failed("no answer", scene_.world.now())) out_ = *out, group_->put_out(*out), wake();
    later(word_pause_, [this] { speaking_ = false, speak(); });
    word_pause_ = std::min(2 * word_pause_, kLongestPause);
  });
}

void Worker::listen() {
  if (talk_->over()) return;
  const double sent = scene_.world.now();
  scene_.post.call(pid, process, "GET", talk_->news_target(), "", kNewsSeconds, [this, sent](const auto& response) {
    const bool answered = response && take(*response, sent);
    if (answered && !talk_->introducing()) {
      news_pause_ = kFirstPause;
      return listen();
    }
    later(news_pause_, [this] { listen(); });
    news_pause_ = std::min(2 * news_pause_, kLongestPause);
  });
}

bool Worker::take(const http::Response& response, double sent) {
  if (response.body.find("\"seated\":true") != std::string::npos) confirmed_ = std::max(confirmed_, sent);
  const cluster::Heard heard = talk_->hear(response, sent, scene_.world.now());
  dirty_ = dirty_ || heard.speak;
  if (heard.view) act_on(*heard.view);
  if (heard.requests) requests_ = *heard.requests;
  if (heard.finished) finished_ = heard.finished;
  const std::string over = heard.out.value_or(heard.finished ? "the run is over" : "");
  if (!over.empty() && out_.empty()) out_ = over, group_->put_out(over);
  wake();
  return heard.understood;
}

void Worker::act_on(const cluster::View& view) {
  scene_.judge.view(view);
  group_->adopt(view);
  place_->take(view);
  tell([&](cluster::Told& told) { place_->tell_view(told); });
}

void Worker::tell(const std::function<void(cluster::Told&)>& change) {
  if (!talk_->tell(change)) return;
  dirty_ = true;
  speak();
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

void Worker::send_state(std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot, int64_t round, uint64_t history,
                        MemberId joiner) {
  group::StateSender frames(*snapshot, round, history);
  while (auto frame = frames.next()) {
    if (place_->joins(joiner)) links_->send(joiner, std::move(*frame));
  }
}

// Whatever came, the step thread and its lanes look again.
void Worker::wake() {
  if (std::exchange(awake_, true)) return;
  later(scene_.world.random.uniform(0, 0.0003), [this] {
    awake_ = false;
    proceed();
  });
}

}  // namespace sinew::sim
