// A worker's run: what train/run.cpp does, with numbers instead of a model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "worker.h"

namespace sinew::sim {
namespace {

using Phase = cluster::Member::Phase;
using nlohmann::json;

constexpr double kTellSeconds = 0.2, kLookSeconds = 0.02, kFinishedSeconds = 10;  // as distribute/members.cpp
constexpr double kBetweenTriesSeconds = 0.1;
constexpr int kTries = 1200;
constexpr double kOthersComeSeconds = 10;  // as train/run.cpp

}  // namespace

// Continues the step thread where it waits.
void Worker::proceed() {
  if (stage_ != Stage::joining && !out_.empty() && stage_ != Stage::ends) throw group::Fenced(out_);
  switch (stage_) {
    case Stage::waits_for_view:
      if (!role_->in_view()) return;
      if (!role_->joining()) return start_from_disk();
      stage_ = Stage::waits_for_state;
      return proceed();
    case Stage::waits_for_state:
      if (received_.complete()) start_from_donor();
      return;
    case Stage::trains:
      for (size_t lane = 0; lane < lanes_.size() && computes_with_; ++lane) work(lane);
      return;
    case Stage::ends: return wind_up();
    case Stage::joining:
    case Stage::over: return;
  }
}

// ---- the beginning -------------------------------------------------------------------------------------------------

void Worker::start_from_disk() {
  const auto newest = checkpoint::load_newest(scene_.disk, "/run/checkpoints");
  if (!newest.loaded && !newest.damaged.empty()) return scene_.judge.complain("every checkpoint is damaged");
  if (newest.loaded) restore(*newest.loaded);
  forget_requests();
  training_.attempt = scene_.judge.begins(membership_->id(), *role_->view(), training_.step, training_.state);
  start(0, std::nullopt);
}

// Another attempt counts requests again from the beginning.
void Worker::forget_requests() {
  training_.request = 0;
  if (training_.control_message.empty()) return;
  json entries = json::parse(training_.control_message);
  for (json& entry : entries) entry.erase("request");
  training_.control_message = entries.dump();
}

void Worker::start_from_donor() {
  const int64_t collective = received_.collective();
  const uint64_t history = received_.history();
  restore(received_.result());
  start(collective, history);
}

void Worker::start(int64_t collective, std::optional<uint64_t> history) {
  group_->start_at(collective, {training_.step, training_.state}, history);
  stage_ = Stage::trains;
  later(scene_.world.random.uniform(0, 0.05), [this] { one_turn(); });
}

// ---- a step --------------------------------------------------------------------------------------------------------

void Worker::boundary() {
  if (role_->owes_state()) {
    const auto taken = std::make_shared<const checkpoint::OwnedSnapshot>(snapshot());
    for (const MemberId joiner : role_->serve()) {
      scene_.world.say("process " + std::to_string(pid) + " sends its state of step " + std::to_string(training_.step) +
                       " to member " + std::to_string(joiner.value));
      later(scene_.world.random.uniform(0, 0.3),
            [this, taken, collective = group_->collective(), history = group_->history(), joiner] {
              send_state(taken, collective, history, joiner);
            });
    }
  }
  if (role_->wants_to_compute(group_->ahead()))
    report([](cluster::MemberReport& report) { report.phase = Phase::caught_up; });
  if (scene_.world.now() - reported_at_ < kTellSeconds) return;
  reported_at_ = scene_.world.now();
  const double speed = static_cast<double>(lanes_.size()) / (pace_ * scene_.shard_seconds);
  report([&](cluster::MemberReport& report) {
    report.step = training_.step;
    report.speed = computed_ ? speed * scene_.world.random.uniform(0.9, 1.1) : 0;
  });
}

void Worker::one_turn() {
  boundary();
  obey(std::exchange(training_.control_message, ""));
  if (stop_code_ || training_.step >= scene_.job.collectives()) {
    stage_ = Stage::ends;
    return wind_up();
  }
  const std::string control_message = poll();
  const auto& shape = scene_.job.shape(training_.step);
  group_->begin(shape.shards, shape.lengths, control_message);
  computes_with_ = training_.control;
  lanes_.assign(lanes_.size(), Lane());
  proceed();
}

// People's requests go with this step and take effect at the next one.
std::string Worker::poll() {
  json entries = json::array();
  if (training_.request > taken_) {
    taken_ = training_.request;
    report([&](cluster::MemberReport& report) { report.taken_requests = taken_; });
  }
  if (asked_to_leave_ && !leaving_) {
    leaving_ = true;
    report([](cluster::MemberReport& report) { report.phase = Phase::leaving; });
  }
  if (!leaving_ || group_->view().members.size() > 1) {
    alone_since_.reset();
  } else if (!alone_since_) {
    alone_since_ = scene_.world.now();
  } else if (scene_.world.now() - *alone_since_ >= kOthersComeSeconds) {
    scene_.judge.stops();
    entries.push_back({{"kind", "stop"}, {"value", 75.0}});
  }
  if (role_->is_leader()) {
    for (const cluster::ControlRequest& request : requests_) {
      if (request.number <= taken_) continue;
      entries.push_back({{"kind", request.kind}, {"value", request.value}, {"request", request.number}});
    }
  }
  return entries.empty() ? "" : entries.dump();
}

void Worker::obey(const std::string& control_message) {
  if (control_message.empty()) return;
  for (const json& entry : json::parse(control_message)) {
    const std::string kind = entry.at("kind");
    if (const int64_t request = entry.value("request", int64_t{0}); request > 0) {
      if (request <= training_.request)
        scene_.judge.complain("request " + std::to_string(request) + " is obeyed twice");
      training_.request = request;
    }
    if (kind == "learning_rate") training_.control.learning_rate = entry.at("value");
    if (kind == "batch_size") training_.control.batch_size = entry.at("value");
    if (kind == "stop") stop_code_ = entry.at("value").get<int64_t>();
  }
}

void Worker::work(size_t at) {
  if (!process.alive() || !computes_with_ || lanes_[at].busy || lanes_[at].done) return;
  lanes_[at].busy = true;
  const group::Group::Turn turn = group_->turn();
  using Kind = group::Group::Turn::Kind;
  if (turn.kind == Kind::shard) {
    const int64_t step = training_.step;
    const uint64_t numbers = computes_with_->with(training_.state);
    const double seconds = scene_.shard_seconds * pace_ * scene_.world.random.uniform(kLeastOfUsual, kMostOfUsual);
    return later(seconds, [this, at, step, numbers, shard = turn.shard] {
      group_->deliver(shard, scene_.job.leaf(step, shard.value, numbers));
      scene_.judge.delivers(training_.attempt, step, shard.value, pid);
      computed_ = true;
      lanes_[at].busy = false;
      wake();
    });
  }
  if (turn.kind == Kind::worked) {
    return later(scene_.world.random.uniform(0, 0.001), [this, at] {
      lanes_[at].busy = false;
      wake();
    });
  }
  lanes_[at] = {.busy = false, .done = turn.kind == Kind::over};
  if (std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.done; })) finish_step();
}

void Worker::finish_step() {
  const auto& shape = scene_.job.shape(training_.step);
  auto rows = group::simulation::blank(shape.lengths);
  std::vector<float*> out;
  for (auto& row : rows) out.push_back(row.data());
  const group::Reduced reduced = group_->finish(out);
  const uint64_t numbers = computes_with_->with(training_.state);
  const uint64_t after = group::simulation::Job::next_state(numbers, rows, reduced);
  scene_.judge.commits(
      {pid, training_.attempt, training_.step, training_.state, after, *computes_with_, rows, reduced});
  computes_with_.reset();
  training_.state = after;
  training_.control_message = reduced.control_message;
  ++training_.step;
  if (training_.step % scene_.save_every == 0) save();
  later(scene_.world.random.uniform(0, 0.005), [this] { one_turn(); });
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

void Worker::save() {
  if (!role_->is_leader() || !writer_->submit(snapshot())) return;
  later(scene_.world.random.uniform(0, 0.05), [this] { write(); });
}

// The checkpoint writer's thread. The disk makes it wait in the middle of a write.
void Worker::write() {
  if (std::exchange(writing_, true)) return;
  scene_.at_the_disk.push_back(this);
  while (process.alive() && writer_->work()) {
  }
  scene_.at_the_disk.pop_back();
  writing_ = false;
  const auto durable = writer_->status().durable;
  if (!durable || !process.alive()) return;
  scene_.judge.durable(durable->value);
  report([&](cluster::MemberReport& report) { report.durable_step = durable->value; });
}

void Worker::waits_for_the_disk() {
  constexpr double kStall = 0.02;
  const bool stalls = scene_.world.chance(kStall);
  if (!process.wait(scene_.world.random.uniform(0, stalls ? 1.5 : 0.01))) throw WorldStopped();
}

checkpoint::OwnedSnapshot Worker::snapshot() const {
  checkpoint::OwnedSnapshot owned;
  owned.step = Step(training_.step);
  owned.digest = {training_.state, 0};
  owned.state_json = json({{"state", training_.state},
                           {"learning_rate", training_.control.learning_rate},
                           {"batch_size", training_.control.batch_size},
                           {"control_message", training_.control_message},
                           {"request", training_.request},
                           {"attempt", training_.attempt}})
                         .dump();
  Buffer bytes(sizeof training_.state);
  std::copy_n(reinterpret_cast<const std::byte*>(&training_.state), sizeof training_.state, bytes.data());
  owned.parts["model"].emplace_back(checkpoint::TensorEntry{.name = "state", .dtype = DType::i64, .shape = {1}},
                                    std::move(bytes));
  return owned;
}

void Worker::restore(const checkpoint::Loaded& loaded) {
  const json state = json::parse(loaded.state_json);
  training_.step = loaded.step.value;
  training_.state = state.at("state");
  training_.control = {state.at("learning_rate"), state.at("batch_size")};
  training_.control_message = state.at("control_message");
  training_.request = state.at("request");
  training_.attempt = state.at("attempt");
  if (loaded.digest != Digest{training_.state, 0}) scene_.judge.complain("a state without its digest");
}

// ---- the end -------------------------------------------------------------------------------------------------------

// The leader saves the last state and ends the run. The other members stay until then, ready to become the leader.
void Worker::wind_up() {
  if (finished_) return end_process({static_cast<int>(*finished_), 0}, "the run is over");
  if (!out_.empty()) throw group::Fenced(out_);
  const double now = scene_.world.now();
  if (told_finished_at_) {
    if (now - *told_finished_at_ > kFinishedSeconds)
      end_process({static_cast<int>(stop_code_.value_or(0)), 0}, "it said that the run is over");
  } else if (role_->is_leader()) {
    if (writer_->status().durable == Step(training_.step)) {
      told_finished_at_ = now;
      report([&](cluster::MemberReport& report) {
        report.finished = stop_code_.value_or(0);
        report.phase = Phase::finished;
      });
    } else if (writer_->ready() && now >= next_try_) {
      if (++tries_ > kTries) return scene_.judge.complain("the last checkpoint could not be saved");
      next_try_ = now + kBetweenTriesSeconds;
      save();
    }
  }
  if (std::exchange(looks_, true)) return;
  later(kLookSeconds, [this] {
    looks_ = false;
    wind_up();
  });
}

}  // namespace sinew::sim
