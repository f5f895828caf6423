// What a worker spends its time and the machine on, between its first step and its last one. Private to train/.
#pragma once

#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "train/engine_trainer.h"

namespace sinew::train {

class WorkerAccounts final : public loop::Accounts {
 public:
  struct Begin {
    int64_t program_bytes = 0, data_bytes = 0;  // see rundir::MemoryUse
    int64_t workers_here = 1;                   // they share this machine's cores and its quota
  };
  // `reducer` is that of the group, or null. What is passed by reference must outlive the accounts.
  WorkerAccounts(const Begin& begin, const StageTimer& stages, EngineTrainer& trainer, const Reducer* reducer,
                 const Clock& clock);

  void steps_begin() override;
  void steps_end() override;
  void pause() override;
  void go_on() override;
  double waiting_share() override;
  void add_to(rundir::Outcome& outcome) override;

 private:
  ResourceUse used_so_far() const;
  ResourceUse used() const;  // since steps_begin(), the part of this worker
  std::optional<rundir::ModelUse> model() const;
  StageTimes measured_times() const;
  // so far, without what was left out
  StageTimes times() const;
  LoadUse loading() const;

  const Begin begin_;
  const StageTimer& stages_;
  EngineTrainer& trainer_;
  const Reducer* reducer_;
  const Clock& clock_;
  ResourceUse at_begin_;
  struct Moment {
    StageTimes times;
    ResourceUse used;
    LoadUse loading;
  };
  std::optional<Moment> paused_;  // when pause() was called, until go_on()
  StageTimes left_out_;
  LoadUse loading_left_out_;
  int64_t steps_at_begin_ = 0;
  double flops_at_begin_ = 0, next_look_ = 0, waiting_share_ = 0;
  // of the steps; nullopt before their end
  std::optional<StageTimes> times_;
  std::optional<ResourceUse> resources_;
  std::optional<LoadUse> loading_;
  std::optional<rundir::ModelUse> model_;
  std::vector<double> shares_;
};

}  // namespace sinew::train
