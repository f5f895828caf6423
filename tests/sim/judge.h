// Checks the conditions that must hold in every story. The judge sees all members at once, as no member does.
//
// An *attempt* is the work of the members that begin together from one checkpoint or from step 0, and of the members
// that join them later. It ends when all members that have its state are gone and others begin from a checkpoint.
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
#include "loop/loop.h"
#include "world.h"

namespace sinew::sim {

// The collectives of a random job of `steps` steps. The collective of a step has the step's number; the evaluation of
// the state at step t has number steps + t, and a comparison of the members' states at step t has number
// 2 * steps + 1 + t.
struct TrainingJob {
  explicit TrainingJob(uint64_t seed);
  group::simulation::Job numbers;
  int64_t steps;
  int64_t evaluation_at(Step step) const { return steps + step.value; }
  int64_t comparison_at(Step step) const { return 2 * steps + 1 + step.value; }
  bool is_comparison(int64_t number) const { return number > 2 * steps; }
};

// The inputs of a step besides the state: the values that control entries change.
struct Control {
  double learning_rate = 1, batch_size = 64;
  bool operator==(const Control&) const = default;
  uint64_t with(uint64_t state) const;       // mixes both values into the state; the result is the input of the step
  uint64_t of_shards(uint64_t state) const;  // the same for the shards, whose results do not depend on the rate
};

// The origin of a training state: the attempt, and the control messages of that attempt that led to the state. A group
// may repeat a collective with another control message, so one attempt may have several histories.
struct Origin {
  int64_t attempt = 0, history = 0;
};

// A member's report of a step that it committed.
struct Commit {
  int64_t pid = 0;
  Origin origin;  // where the state before the step came from
  int64_t step = 0;
  uint64_t before = 0, after = 0;
  Control control;
  const std::vector<std::vector<float>>& rows;
  const group::Reduced& reduced;
  const loop::ControlLog& log;  // the control log before the step
};

class Judge {
 public:
  Judge(World& world, const TrainingJob& job) : world_(world), job_(job) {}

  // ---- events; the first wrong one ends the story
  void given(MemberId id);                // the coordinator gave this id to a joining worker
  void view(const cluster::View& heard);  // a member received this view
  // A member begins to compute without the state of another member. `from` says which attempt its checkpoint comes
  // from; nullopt if it begins at step 0. If `disturbed`, its process was suspended, perhaps after it had read the
  // checkpoints.
  Origin begins(MemberId id, const cluster::View& view, int64_t step, uint64_t state, std::optional<Origin> from,
                bool disturbed);
  void delivers(int64_t attempt, int64_t step, int64_t shard, int64_t pid);
  Origin commits(const Commit& commit);  // returns the origin of the state after the step
  void evaluates(int64_t pid, int64_t attempt, int64_t number, uint64_t state, const group::Reduced& reduced);
  void compares(int64_t pid, int64_t attempt, int64_t number);
  // A member's state at this step has this digest.
  void digest(int64_t attempt, int64_t step, Digest digest);
  void durable(int64_t step, int64_t attempt);
  // A process is about to rename a file on the shared disk. Only the leader may do this, and only with a valid lease.
  // `term` is that of the coordinator that gave the lease. Effects never go back to an older term.
  void effect(int64_t pid, bool leads, double confirmed, int64_t term, const std::string& path);
  // A member has given this name in the run directory to another file, or removed it. `newest` is the highest member
  // that has taken over the directory.
  void renames(int64_t member, int64_t newest, const std::string& path);
  // A member has appended to the file that has this name. A newer member may have taken over, but it has not yet opened
  // the file, because that makes a copy.
  void appends(int64_t member, const std::string& path);
  void learns_that_it_was_replaced() { ++replaced_; }
  // The coordinator of this term makes a view. No coordinator may make one after a coordinator of a newer term did.
  void makes(int64_t term, const cluster::View& view);
  void elects();  // a member becomes coordinator
  // The story disturbed this process, or it ended. It may be fenced, and other members may repeat its work.
  void disturbed(int64_t pid);
  bool is_disturbed(int64_t pid) const { return disturbed_.contains(pid); }
  // Memory of this process, whose state is at this step, has changed. From this step on, results of the attempt may be
  // wrong. The run must not end with wrong results, and no checkpoint may contain them.
  void memory_changes(int64_t pid, int64_t attempt, int64_t step);
  // The members found that their states differ. They end the attempt; if no majority agrees (is_split), the whole run.
  void notices(int64_t attempt, bool is_split);
  // A member computed a wrong result. The others find it by an audit, before any member uses it.
  void lies(int64_t pid, MemberId id, int64_t attempt);
  void blames(MemberId id);  // the members found that this one computed a wrong result
  // A member finishes a collective of this step while no other member can audit its results. If it lied in the
  // collective, and the auditor died, its wrong result is used.
  void is_alone(MemberId id, int64_t attempt, int64_t step);
  bool is_over(int64_t attempt) const { return attempts_[static_cast<size_t>(attempt)].noticed; }
  // Returns whether all members that committed this step have been disturbed, before it or since. Then perhaps no
  // member that can send the step's result is left, and a member that lacks it must join again.
  bool result_is_gone(int64_t attempt, int64_t step) const;
  void ends(int code);
  bool ended_well() const { return ended_well_; }
  // Called when the run has ended well, with the lines of its ledger and the step of its newest checkpoint. `metrics`
  // has the step and the names of each line of metrics.
  void ends_with(const std::vector<std::pair<int64_t, Digest>>& ledger, std::optional<Step> saved,
                 const std::vector<std::pair<int64_t, std::string>>& metrics);
  void complain(const std::string& what);

  const std::optional<std::string>& complaint() const { return complaint_; }
  struct Tally {  // lets a test check that enough happened
    int64_t stories = 0, attempts = 0, steps = 0, views = 0, recomputed = 0, effects = 0, entries = 0;
    int64_t changes = 0, noticed = 0, splits = 0, not_judged = 0;  // about changes of members' memory
    int64_t lies = 0, blamed = 0;
    int64_t replaced = 0;  // leaders that found out that another had taken over
    int64_t elections = 0;
    void operator+=(const Tally& other);
  };
  Tally tally() const;

 private:
  struct Attempt {
    int64_t begins_at = 0;
    std::set<MemberId> members;                                            // the members that computed when it began
    std::map<int64_t, uint64_t> after;                                     // the state after each step
    uint64_t before = 0;                                                   // the state that it began with
    std::optional<int64_t> wrong_from;                                     // the first step whose result may be wrong
    bool noticed = false;                                                  // the members found that their states differ
    bool split = false;                                                    // and no majority of them agreed
    bool has_liar = false;                                                 // a member computed a wrong result
    std::map<int64_t, Digest> digests;                                     // the digest of the whole state at each step
    std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> computed;  // by step and shard: the processes
    std::map<int64_t, std::vector<int64_t>> committed;  // by collective: the processes that have its result
  };

  struct History {
    int64_t begins_at = 0;
    Control control;                          // the inputs of the next step
    std::vector<loop::ControlEntry> entries;  // the entries in the control messages since begins_at, in order
  };

  void judge_result(Attempt& of, const Commit& commit);
  static bool may_be_wrong(const Attempt& of, int64_t step) { return of.wrong_from && step >= *of.wrong_from; }
  void check_control(const Commit& commit);
  Origin take_control_message(Origin before, int64_t step, const std::string& message);

  World& world_;
  const TrainingJob& job_;
  std::optional<std::string> complaint_;
  std::set<MemberId> ids_;
  std::map<Generation, std::string> views_;
  std::vector<Attempt> attempts_;
  std::vector<History> histories_;
  // (history, control message) -> the history that follows from them
  std::map<std::pair<int64_t, std::string>, int64_t> next_;
  std::set<int64_t> disturbed_;
  int64_t durable_ = 0, effects_ = 0, elections_ = 0;
  int64_t effect_term_ = 0, view_term_ = 0;    // the newest term of an effect, and of a view
  std::map<std::string, int64_t> changed_by_;  // path -> the highest member that changed it
  bool stops_ = false, ended_well_ = false;
  std::map<int64_t, int64_t> changed_;  // process whose memory changed -> the attempt
  int64_t changes_ = 0, noticed_ = 0, splits_ = 0, lies_ = 0, replaced_ = 0;
  std::set<MemberId> liars_, blamed_;
  bool not_judged_ = false;
};

}  // namespace sinew::sim
