// Implements the loop's Trainer with an Engine. Private to train/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "train/engine.h"
#include "train/resolve.h"
#include "train/state.h"
#include "train/threshold.h"

namespace sinew::train {

// Owns the parts of a run that the loop does not know: the prefetcher and the engine with its model and state.
class EngineTrainer final : public loop::Trainer {
 public:
  // `resolved` is the job with every auto decided. The arguments passed by reference must outlive the trainer.
  EngineTrainer(const Resolved& resolved, const data::Dataset& data, const RunOptions& options, Disk& disk,
                StageTimer* stages);

  Engine& engine() { return engine_; }
  LoadUse loading() const { return prefetcher_.use(); }
  loop::Plan plan();  // what the loop needs to know about the job, data and model

  loop::State& state() override { return engine_.state(); }
  int64_t batch_size(Step step) const override { return engine_.batch_size(step); }
  // The loop repeats a step that diverges. Only the repeated step is explained.
  StepResult step(const StepMessage& own, bool want_norm) override {
    return engine_.step(own, want_norm, std::exchange(repeats_, false));
  }
  void audit_next_step() override {
    engine_.audit_next_step();
    repeats_ = true;
  }
  bool use(Condition condition) override { return engine_.use(condition); }
  void end_conditions() override { engine_.end_conditions(); }
  bool can_use(Condition condition) override { return engine_.can_use(condition); }
  void use_loader_threads(int64_t threads) override { prefetcher_.use_threads(threads); }
  EvaluationResult evaluate(data::Split split, const std::function<bool()>& too_late = nullptr) override {
    return engine_.evaluate(split, too_late);
  }
  Digest digest() override;
  void compare(Digest own) override { engine_.compare(own); }
  void check_memory() override { engine_.check_memory(); }
  checkpoint::OwnedSnapshot snapshot(const StateFacts& facts) override;
  StateFacts restore(const checkpoint::Loaded& loaded) override;
  std::string warm_start() override;
  void leave_group() override { engine_.set_reducer(*own_reducer_); }
  std::string choose_threshold(bool may_evaluate) override;
  std::string write_artifact(Disk& disk) override;

 private:
  const spec::Job& job_;
  const data::Dataset& data_;
  const std::string run_directory_, resolved_yaml_;
  Disk& disk_;
  data::Prefetcher prefetcher_;
  std::unique_ptr<Reducer> own_reducer_;  // reduces when the run has one worker, and after training
  Engine engine_;
  std::optional<Threshold> threshold_;  // of the model that the run ends with
  bool repeats_ = false;                // true: the next step repeats one that diverged
};

}  // namespace sinew::train
