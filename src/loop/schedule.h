// Part of loop.h: converts durations to steps, and gives the learning rate of each step. All functions are pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "spec/spec.h"

namespace sinew::loop {

// The sizes with which durations are converted to steps.
struct Lengths {
  int64_t train_size = 0, batch_size = 0, steps_per_epoch = 0, tokens_per_sample = 1;
  std::optional<int64_t> total_steps;  // known once trainer.max_duration is converted; nullopt if that is a time
};

// Returns the number of steps of a duration, at least 1 unless the duration is 0. A fraction is a fraction of
// total_steps. Returns nullopt for a time, and for a fraction if total_steps is not known.
std::optional<int64_t> steps_of(const spec::Duration& duration, const Lengths& lengths);

Lengths lengths_of(const spec::Job& job, int64_t train_size, int64_t tokens_per_sample);

// The steps after which budget.training ends the training; nullopt: there is no such budget.
std::optional<int64_t> budget_steps(const spec::Job& job, const Lengths& lengths);

// The batch size of each step as the job defines it: the stages of trainer.batch_size_ramp, then batch_size. Users may
// change it during training (ControlLog::batch_size).
class BatchSizes {
 public:
  BatchSizes(const spec::TrainerOptions& trainer, int64_t train_size, int64_t tokens_per_sample);
  int64_t at(int64_t step) const;
  bool ramp_is_over(int64_t step) const { return step / stage_ >= static_cast<int64_t>(ramp_.size()); }

 private:
  std::vector<int64_t> ramp_;
  int64_t stage_ = 1, final_size_;
};

// Returns the number of steps until trainer.max_duration is over, if the batch of step t has size_at(t) samples.
// Returns nullopt if the duration is a time. Walks through every step; callers use it when the batch size changes.
std::optional<int64_t> count_steps(const spec::TrainerOptions& trainer, const Lengths& lengths,
                                   const std::function<int64_t(int64_t)>& size_at);

// Whether the schedule is made for a last step. If trainer.max_duration is a time, the run estimates this step.
bool needs_last_step(const spec::SchedulerOptions& options);

// The learning rate of each step, as a factor of optimizer.lr.
class Schedule {
 public:
  // Without lengths.total_steps, the schedule stays at its beginning. Throws Error if warmup or step_size is a time.
  Schedule(const spec::SchedulerOptions& options, Lengths lengths);
  double factor(int64_t step) const;

 private:
  double shape(int64_t step) const;

  std::string name_;
  double gamma_, final_factor_;
  int64_t warmup_ = 0, step_size_ = 1, total_ = 0;
};

// The factor of model.dropout_schedule or optimizer.weight_decay_schedule at a step: `constant` is 1, and `flat_cos` is
// 1 in the first half of the training and then falls to 0 as half a cosine. Every member computes it itself, so it uses
// no function of libm. It follows the job: a request that changes the batch size does not change it.
double decline(const std::string& name, int64_t step, int64_t total_steps);
// Throws Error if one of these schedules needs to know the last step but trainer.max_duration is a time.
void check_declines(const spec::Job& job, const Lengths& lengths);

}  // namespace sinew::loop
