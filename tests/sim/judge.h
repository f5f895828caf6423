// The conditions that must hold in every story. The judge sees all members at once.
//
// An *attempt* is the work of all members that begin together in a fresh view, and of those that join them. It ends
// when all members that have its state are gone and others begin from a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "group/simulation.h"
#include "world.h"

namespace sinew::sim {

// The part of the control log that affects the next step.
struct Control {
  double learning_rate = 1, batch_size = 64;
  bool operator==(const Control&) const = default;
  uint64_t with(uint64_t state) const;  // the input of the step's numbers
};

// A member's report of a step that it committed.
struct Commit {
  int64_t pid = 0, attempt = 0, step = 0;
  uint64_t before = 0, after = 0;
  Control control;
  const std::vector<std::vector<float>>& rows;
  const group::Reduced& reduced;
};

class Judge {
 public:
  Judge(World& world, const group::simulation::Job& job) : world_(world), job_(job) {}

  // ---- events; an event that must not happen ends the story
  void given(MemberId id);                // to a joining worker
  void view(const cluster::View& heard);  // received by a member
  // A member begins to compute in a fresh view. Returns its attempt.
  int64_t begins(MemberId id, const cluster::View& view, int64_t step, uint64_t state);
  void delivers(int64_t attempt, int64_t step, int64_t shard, int64_t pid);
  void commits(const Commit& commit);
  void durable(int64_t step);
  // A process is about to change something on the disk that others see.
  void effect(int64_t pid, bool leads, double confirmed, const std::string& path);
  // The story disturbed this process, or it ended. It may be fenced, and other members may repeat its work.
  void disturbed(int64_t pid) { disturbed_.insert(pid); }
  bool is_disturbed(int64_t pid) const { return disturbed_.contains(pid); }
  // All members that could have handed over this step's result were disturbed since. A member that lacks it can only
  // join again.
  bool result_is_gone(int64_t attempt, int64_t step) const;
  void stops() { stops_ = true; }  // the only worker was asked to leave
  void ends(int code);
  void complain(const std::string& what);

  const std::optional<std::string>& complaint() const { return complaint_; }
  struct Tally {  // so that a test can check that enough happened
    int64_t stories = 0, attempts = 0, steps = 0, views = 0, recomputed = 0, effects = 0;
    void operator+=(const Tally& other);
  };
  Tally tally() const;

 private:
  struct Attempt {
    int64_t begins_at = 0;
    std::set<MemberId> members;                                            // that began it
    std::map<int64_t, uint64_t> after;                                     // after each step
    uint64_t before = 0;                                                   // the first
    std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> computed;  // by step and shard: the members
    std::map<int64_t, std::vector<int64_t>> committed;                     // by step: the members that have its result
  };

  World& world_;
  const group::simulation::Job& job_;
  std::optional<std::string> complaint_;
  std::set<MemberId> ids_;
  std::map<Generation, std::string> views_;
  std::vector<Attempt> attempts_;
  std::set<int64_t> disturbed_;
  int64_t durable_ = 0, effects_ = 0;
  bool stops_ = false;
};

}  // namespace sinew::sim
