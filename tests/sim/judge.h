// What must hold in every story, seen from where all of it can be seen.
//
// An *attempt* is what all members that begin together in a fresh view, and those that join them, compute: until all
// who have its state are gone and others begin from a checkpoint.
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

// What of the control log the next step is computed with.
struct Control {
  double learning_rate = 1, batch_size = 64;
  bool operator==(const Control&) const = default;
  uint64_t with(uint64_t state) const;  // what the step's numbers depend on
};

// What a member says it made of a step.
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

  // ---- what happens; each ends the story if it may not
  void given(MemberId id);                // to one who joins
  void view(const cluster::View& heard);  // by a member
  // A member begins to compute with the others of a fresh view; its attempt.
  int64_t begins(MemberId id, const cluster::View& view, int64_t step, uint64_t state);
  void delivers(int64_t attempt, int64_t step, int64_t shard, int64_t pid);
  void commits(const Commit& commit);
  void durable(int64_t step);
  // Something others see is about to change on the disk.
  void effect(int64_t pid, bool leads, double confirmed, const std::string& path);
  // Something was done to this process, or it ended: its life may be over, and what it has may be computed anew.
  void disturbed(int64_t pid) { disturbed_.insert(pid); }
  bool is_disturbed(int64_t pid) const { return disturbed_.contains(pid); }
  // Whoever could have handed over this step's root was disturbed since: who had not heard it yet can only join anew.
  bool result_is_gone(int64_t attempt, int64_t step) const;
  void stops() { stops_ = true; }  // the only worker was told to leave
  void ends(int code);
  void complain(const std::string& what);

  const std::optional<std::string>& complaint() const { return complaint_; }
  struct Tally {  // so that a test can ask for enough of everything
    int64_t stories = 0, attempts = 0, steps = 0, views = 0, recomputed = 0, effects = 0;
    void operator+=(const Tally& other);
  };
  Tally tally() const;

 private:
  struct Attempt {
    int64_t begins_at = 0;
    std::set<MemberId> members;                                            // who began it
    std::map<int64_t, uint64_t> after;                                     // behind each step
    uint64_t before = 0;                                                   // the first
    std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> computed;  // by step and shard: by whom
    std::map<int64_t, std::vector<int64_t>> committed;                     // by step: by whom, who has its root
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
