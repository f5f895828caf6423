// Inside train/: durations turned into steps, and the learning rate of a step. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "spec/spec.h"

namespace sinew::train {

// What durations are measured against.
struct Lengths {
  int64_t train_size = 0, batch_size = 0, steps_per_epoch = 0, tokens_per_sample = 1;
  std::optional<int64_t> total_steps;  // known once trainer.max_duration is resolved; nullopt when it is a time
};

// Steps of a duration, at least 1; nullopt for times. A fraction is of the whole training:
// int(fraction * samples of the training) / batch_size.
std::optional<int64_t> steps_of(const spec::Duration& duration, const Lengths& lengths);

Lengths lengths_of(const spec::Job& job, int64_t train_size, int64_t tokens_per_sample);

// Samples of a step as the job has it: the stages of trainer.batch_size_ramp, then batch_size. People may ask for
// others while it trains (ControlLog::batch_size).
class BatchSizes {
 public:
  BatchSizes(const spec::TrainerOptions& trainer, int64_t train_size, int64_t tokens_per_sample);
  int64_t at(int64_t step) const;

 private:
  std::vector<int64_t> ramp_;
  int64_t stage_ = 1, then_;
};

// Steps until trainer.max_duration is over when step t takes size_at(t) samples; nullopt when it is a time. Walks
// through every step: for trainings whose batch changes.
std::optional<int64_t> count_steps(const spec::TrainerOptions& trainer, const Lengths& lengths,
                                   const std::function<int64_t(int64_t)>& size_at);

// Learning rate of each step as a factor of optimizer.lr.
class Schedule {
 public:
  // Throws Error when the schedule needs an end and the training is bounded by time alone.
  Schedule(const spec::SchedulerOptions& options, const Lengths& lengths);
  double factor(int64_t step) const;

 private:
  double shape(int64_t step) const;

  std::string name_;
  double gamma_, final_factor_;
  int64_t warmup_ = 0, step_size_ = 1, total_ = 0;
};

}  // namespace sinew::train
