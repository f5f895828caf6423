// A worker process of the simulated run. It runs the real training loop (loop/) with the real parts of a member: the
// reducer's Group, the client of the coordinator, the role in a view, the transfer of the state and the checkpoint
// writer. Only the trainer is simulated: it computes numbers instead of a model (trainer.h).
//
// The threads are fibers: the step thread, one thread for each lane during a collective, and the checkpoint writer's.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/process.h"
#include "base/write_fence.h"
#include "cluster/membership_client.h"
#include "fiber.h"
#include "group/group.h"
#include "group/role.h"
#include "group/state_transfer.h"
#include "loop/loop.h"
#include "network.h"
#include "office.h"
#include "scene.h"
#include "trainer.h"
#include "world.h"

namespace sinew::sim {

// Limits of two random factors on the time of a shard: a pace, drawn once for each worker, and a factor on the usual
// time, drawn for each shard.
constexpr double kLeastPace = 0.5, kMostPace = 2.5, kLeastOfUsual = 0.5, kMostOfUsual = 1.5;

class Worker final : public group::Membership, public Lanes {
 public:
  Worker(Scene& scene, int64_t pid);
  ~Worker() override;

  const int64_t pid;
  const Process process;
  void kill();
  void stop();
  void go_on();
  void ask_to_leave();
  void change_memory();
  void lie() { lies_ = true; }  // its next result is wrong

  const std::optional<ProcessEnd>& end() const { return end_; }
  const std::string& address() const { return address_; }
  bool in_view() const { return group_ && role_->in_view(); }
  bool is_told() const { return group_ != nullptr; }  // the coordinator has given this worker an id
  bool leads() const { return role_ && role_->is_leader(); }
  // its number as a member and as a writer; 0: it has none yet
  int64_t number() const { return group_ ? membership_->id().value : 0; }
  bool has_taken_over() const { return fence_ && fence_->has_taken_over(); }
  double confirmed() const { return confirmed_; }
  int64_t lease_term() const { return lease_term_; }  // the term of the coordinator that gave the newest lease
  bool coordinates() const { return elected_ && elected_->process.alive(); }
  std::vector<LaneActivity> activity() const;  // what its activity board would show

 private:
  // -- worker_line.cpp: exchanges messages with the coordinator and the other members
  void later(double seconds, Event event);
  void guarded(const Event& event);
  void join();
  void become_member(MemberId id);
  void speak();
  void listen();
  bool take(const http::Response& response, double sent);
  void act_on(const cluster::View& view);
  void on_frame(MemberId from, link::Frame frame);
  void send_state(std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot, int64_t collective, uint64_t history,
                  MemberId joiner);
  void end_process(ProcessEnd end, const std::string& why);

  // -- worker_standby.cpp: what cluster::Standby does in the product
  void stand_by();
  void lead(const std::string& why);
  void watch_own_coordinator();
  void end_coordinator(ProcessEnd end);

  // -- worker_member.cpp: the member, as the loop sees it
  group::Group& group() override { return *group_; }
  void report(const std::function<void(cluster::MemberReport&)>& change) override;
  bool is_leader() const override { return role_->is_leader(); }
  bool joining() const override { return role_->joining(); }
  bool leased() const override;
  void check() const override;
  Received receive_state() override;
  void boundary(const std::function<checkpoint::OwnedSnapshot()>& take) override;
  void maybe_caught_up() override;
  std::vector<cluster::ControlRequest> requests() override { return requests_; }
  void taken(int64_t number) override;
  std::optional<int64_t> finished() const override { return finished_; }

  // -- worker_run.cpp: threads
  void start_thread(std::function<void()> body);
  void wake();
  void wait_until(const std::function<bool()>& condition);
  void run();
  ProcessEnd run_loop(std::string& why);
  void write_in_background(const std::function<void()>& work);
  group::Reduced collective(int64_t number, const std::string& control_message, std::optional<Mark> mark,
                            const LeafOf& leaf_of, std::vector<std::vector<float>>& rows) override;
  bool has_peers() const override { return group_->has_peers(); }
  void lane(int lane, int64_t number, const LeafOf& leaf_of);
  std::optional<group::Leaf> a_lie(std::optional<group::Leaf> leaf);
  void post(int lane, const Work& work);

  Scene& scene_;
  const double pace_;
  const int lanes_;
  std::string address_;
  cluster::ClientOptions client_;
  std::unique_ptr<cluster::MembershipClient> membership_;
  std::unique_ptr<link::Links> links_;
  std::unique_ptr<group::Group> group_;
  std::optional<group::Role> role_;
  group::StateReceiver received_;

  bool dirty_ = true, speaking_ = false, awake_ = false;
  int64_t pulse_ = 0;
  double heartbeat_pause_ = 0.02, updates_pause_ = 0.02, confirmed_ = -1e9;
  std::vector<cluster::ControlRequest> requests_;
  int64_t taken_ = 0;
  std::optional<int64_t> finished_;
  std::string out_;
  std::optional<cluster::View> newest_;  // the newest view that came
  std::shared_ptr<Office> elected_;      // the coordinator of this process
  int64_t seen_coordinators_ = 0;        // the count of coordinators that coordinator.json has had since same_since_
  double same_since_ = 0;
  int64_t lease_term_ = 0;

  std::atomic<int> stop_signals_{0};
  std::optional<WriteFence> fence_;
  std::unique_ptr<Trainer> trainer_;
  bool lies_ = false;
  int64_t in_collective_ = 0;  // the newest collective's number, for the judge
  bool computed_ = false;      // whether this worker has computed a shard
  std::map<int, LaneActivity> activity_;
  std::optional<ProcessEnd> end_;
  std::list<std::unique_ptr<Fiber>> threads_;  // in the order in which they began; destroyed in the reverse order
};

}  // namespace sinew::sim
