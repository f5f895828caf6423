// A worker process of the simulated run. It does what distribute/ and train/ do around group::Group, with the real
// parts of a member (its exchange with the coordinator, its role, the transfer of the state, the checkpoint writer) and
// with the arithmetic of the group's simulation instead of a model.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/faulty_disk.h"
#include "base/process.h"
#include "cluster/membership_client.h"
#include "group/group.h"
#include "group/role.h"
#include "group/state_transfer.h"
#include "judge.h"
#include "network.h"
#include "office.h"
#include "world.h"

namespace sinew::sim {

class Worker;

// A worker's time for a shard as a factor of the scene's, and a shard's time as a factor of the worker's.
constexpr double kLeastPace = 0.5, kMostPace = 2.5, kLeastOfUsual = 0.5, kMostOfUsual = 1.5;

// The surroundings of the workers of a story.
struct Scene {
  Scene(uint64_t seed, std::vector<group::simulation::CollectiveShape> shapes)
      : world(seed), network(world), post(world), job(seed, std::move(shapes)), judge(world, job) {}
  World world;
  Network network;
  Post post;
  FaultyDisk disk;
  const group::simulation::Job job;
  Judge judge;
  int64_t save_every = 5;
  double shard_seconds = 0.03;
  std::vector<Worker*> at_the_disk;  // workers whose thread is in a call of the disk; the thread of the last one runs
};

// The training state. Checkpoints and the transfer to a joiner contain all of it.
struct Training {
  int64_t step = 0;
  uint64_t state = 0;
  Control control;
  std::string control_message;  // sent with the previous step; takes effect at this one
  int64_t request = 0;          // number of the newest request that was obeyed in this attempt
  int64_t attempt = 0;          // for the judge
};

class Worker {
 public:
  Worker(Scene& scene, int64_t pid);

  const int64_t pid;
  const Process process;
  void kill();
  void stop();
  void go_on();
  void ask_to_leave();

  const std::optional<ProcessEnd>& end() const { return end_; }
  const std::string& address() const { return address_; }
  bool in_view() const { return group_ && role_->in_view(); }
  bool is_told() const { return group_ != nullptr; }  // the coordinator knows of it
  void waits_for_the_disk();
  bool leads() const { return role_ && role_->is_leader(); }
  double confirmed() const { return confirmed_; }

 private:
  enum class Stage { joining, waits_for_view, waits_for_state, trains, ends, over };
  struct Lane {
    bool busy = false, done = false;
  };

  // -- worker_line.cpp: the coordinator and the other members
  void later(double seconds, Event event);
  void guarded(const Event& event);
  void join();
  void become_member(MemberId id);
  void speak();
  void listen();
  bool take(const http::Response& response, double sent);
  void act_on(const cluster::View& view);
  void report(const std::function<void(cluster::MemberReport&)>& change);
  void on_frame(MemberId from, link::Frame frame);
  void send_state(std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot, int64_t collective, uint64_t history,
                  MemberId joiner);
  void wake();
  void end_process(ProcessEnd end, const std::string& why);

  // -- worker_steps.cpp: the run
  void proceed();
  void start_from_disk();
  void forget_requests();
  void start_from_donor();
  void start(int64_t collective, std::optional<uint64_t> history);
  void boundary();
  void one_turn();
  std::string poll();
  void work(size_t lane);
  void finish_step();
  void obey(const std::string& control_message);
  void save();
  void write();
  void wind_up();
  checkpoint::OwnedSnapshot snapshot() const;
  void restore(const checkpoint::Loaded& loaded);

  Scene& scene_;
  const double pace_;
  std::string address_;
  cluster::ClientOptions client_;
  std::unique_ptr<cluster::MembershipClient> membership_;
  std::unique_ptr<link::Links> links_;
  std::unique_ptr<group::Group> group_;
  std::optional<group::Role> role_;
  group::StateReceiver received_;
  std::unique_ptr<checkpoint::Writer> writer_;

  bool dirty_ = true, speaking_ = false, awake_ = false, writing_ = false;
  int64_t pulse_ = 0;
  double heartbeat_pause_ = 0.02, updates_pause_ = 0.02, confirmed_ = -1e9, reported_at_ = 0;
  std::vector<cluster::ControlRequest> requests_;
  std::optional<int64_t> finished_;
  std::string out_;

  Stage stage_ = Stage::joining;
  Training training_;
  std::vector<Lane> lanes_;
  std::optional<Control> computes_with_;  // in the open collective
  std::optional<int64_t> stop_code_;
  int64_t taken_ = 0;
  bool asked_to_leave_ = false, leaving_ = false, looks_ = false;
  std::optional<double> alone_since_;  // it should leave, and no other member can go on
  bool computed_ = false;              // a shard
  std::optional<double> told_finished_at_;
  double next_try_ = 0;
  int tries_ = 0;
  std::optional<ProcessEnd> end_;
};

}  // namespace sinew::sim
