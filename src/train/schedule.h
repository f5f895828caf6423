// Inside train/: durations turned into steps, and the learning rate of a step. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

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
