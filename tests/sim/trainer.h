// Implements loop::Trainer for a simulated worker, with numbers instead of a model. Each step and each evaluation is a
// collective of the group; the worker's lanes compute its shards. The trainer reports the results to the judge.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "group/group.h"
#include "scene.h"

namespace sinew::sim {

using LeafOf = std::function<std::optional<group::Leaf>(int64_t shard)>;

// Computes a collective together with the other members.
class Lanes {
 public:
  virtual group::Reduced collective(int64_t number, const std::string& control_message, std::optional<Mark> mark,
                                    const LeafOf& leaf_of, std::vector<std::vector<float>>& rows) = 0;
  virtual bool has_peers() const = 0;  // whether another member computes

 protected:
  ~Lanes() = default;
};

class Trainer final : public loop::Trainer {
 public:
  Trainer(Scene& scene, int64_t pid, Lanes& lanes);

  // Where the state comes from, or nullopt while it is the initial state and no attempt has begun.
  std::optional<Origin> origin;
  uint64_t numbers() const { return numbers_; }
  // Changes one bit of this worker's memory.
  void change_memory(RandomStream& random);

  loop::State& state() override { return state_; }
  int64_t batch_size(Step step) const override;
  loop::StepResult step(const loop::StepMessage& own, bool want_norm) override;
  void audit_next_step() override {}  // no step of a story diverges
  loop::EvaluationResult evaluate(data::Split split, const std::function<bool()>& too_late) override;
  Digest digest() override;
  void compare(Digest own) override;
  void check_memory() override;
  checkpoint::OwnedSnapshot snapshot(const loop::StateFacts& facts) override;
  loop::StateFacts restore(const checkpoint::Loaded& loaded) override;
  std::string warm_start() override { return ""; }
  void leave_group() override { alone_ = true; }
  std::string write_artifact(Disk& disk) override;

 private:
  // Returns 0 while all of frozen_ are 0. Otherwise returns bits that change the results and digests of this member.
  uint64_t deviation() const;

  Scene& scene_;
  const int64_t pid_;
  Lanes& lanes_;
  loop::State state_;
  uint64_t numbers_ = 0;  // takes the place of the tensors
  // frozen_ takes the place of frozen parameters. Its values are 0 unless the memory changes. Each step compares one.
  std::vector<uint64_t> frozen_, first_seen_;
  bool alone_ = false;
};

}  // namespace sinew::sim
