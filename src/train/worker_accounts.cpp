#include "train/worker_accounts.h"

#include <algorithm>
#include <cmath>

#include "rundir/rundir.h"

namespace sinew::train {
namespace {

// Evaluations after the last step are no part of the training. What else came after it is its end.
StageTimes with_end(StageTimes steps, const StageTimes& now) {
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    const bool of_evaluation = stage == Stage::evaluation || stage == Stage::data_wait || stage == Stage::imbalance ||
                               stage == Stage::reduction;
    const double later = std::max(0.0, now.seconds[i] - steps.seconds[i]);
    if (stage != Stage::finish && stage != Stage::test) steps[of_evaluation ? Stage::test : Stage::finish] += later;
  }
  steps[Stage::finish] += now[Stage::finish];
  return steps;
}

}  // namespace

WorkerAccounts::WorkerAccounts(const Begin& begin, const StageTimer& stages, EngineTrainer& trainer,
                               const Reducer* reducer, const Clock& clock)
    : begin_(begin), stages_(stages), trainer_(trainer), reducer_(reducer), clock_(clock), at_begin_(used_so_far()) {}

ResourceUse WorkerAccounts::used_so_far() const {
  ResourceUse used = resource_use();
  used.seconds = clock_.monotonic_seconds();
  if (reducer_ != nullptr) used.network = reducer_->traffic();
  return used;
}

ResourceUse WorkerAccounts::used() const {
  const auto workers = static_cast<double>(std::max<int64_t>(1, begin_.workers_here));
  ResourceUse used = between(at_begin_, paused_ ? paused_->used : used_so_far());
  used.cores /= workers;
  used.throttled_seconds /= workers;
  return used;
}

StageTimes WorkerAccounts::measured_times() const {
  StageTimes times = stages_.times();
  const double waited = reducer_ == nullptr ? 0 : std::min(reducer_->waited_seconds(), times[Stage::reduction]);
  times[Stage::reduction] -= waited;
  times[Stage::member_wait] += waited;
  return times;
}

StageTimes WorkerAccounts::times() const {
  StageTimes times = paused_ ? paused_->times : measured_times();
  for (size_t i = 0; i < kStages; ++i) times.seconds[i] = std::max(0.0, times.seconds[i] - left_out_.seconds[i]);
  return times;
}

LoadUse WorkerAccounts::loading() const {
  return between(loading_left_out_, paused_ ? paused_->loading : trainer_.loading());
}

void WorkerAccounts::pause() {
  if (!paused_) paused_ = {measured_times(), used_so_far(), trainer_.loading()};
}

// What was used until the pause shall be what has been used until now.
void WorkerAccounts::go_on() {
  if (!paused_) return;
  const StageTimes now = measured_times();
  for (size_t i = 0; i < kStages; ++i) left_out_.seconds[i] += now.seconds[i] - paused_->times.seconds[i];
  at_begin_ = between(between(at_begin_, paused_->used), used_so_far());
  loading_left_out_ += between(paused_->loading, trainer_.loading());
  paused_.reset();
}

std::optional<rundir::ModelUse> WorkerAccounts::model() const {
  const Engine& engine = trainer_.engine();
  std::optional<rundir::ModelUse> use = engine.model_use();
  if (!use) return use;
  use->steps = trainer_.state().step.value - steps_at_begin_;
  use->flops = std::round(engine.computed_flops() - flops_at_begin_);
  return use;
}

void WorkerAccounts::steps_begin() {
  at_begin_ = used_so_far();
  steps_at_begin_ = trainer_.state().step.value;
  flops_at_begin_ = trainer_.engine().computed_flops();
}

void WorkerAccounts::steps_end() {
  times_ = times();
  resources_ = used();
  loading_ = loading();
  model_ = model();
  if (reducer_ != nullptr) shares_ = reducer_->shares();
}

// Reading this takes a while, so it is read once a second.
double WorkerAccounts::waiting_share() {
  const double now = clock_.monotonic_seconds();
  if (now < next_look_) return waiting_share_;
  next_look_ = now + 1;
  const ResourceUse use = used();
  const double waited = waiting_seconds(use, use.seconds);
  return waiting_share_ = waited / std::max(1e-9, waited + use.cpu_seconds);
}

void WorkerAccounts::add_to(rundir::Outcome& outcome) {
  outcome.time = times_ ? with_end(*times_, times()) : times();
  outcome.resources = resources_ ? *resources_ : used();
  if (resources_) outcome.resources->peak_memory_bytes = resource_use().peak_memory_bytes;
  outcome.loading = loading_ ? *loading_ : loading();
  outcome.shares = shares_;
  outcome.model = model_ ? model_ : model();
  rundir::MemoryUse& memory = outcome.memory.emplace();
  memory.program = begin_.program_bytes;
  memory.data = begin_.data_bytes;
  const TrainingState& state = trainer_.engine().state();
  for (const auto& [name, tensor] : state.parameters) memory.parameters += static_cast<int64_t>(tensor.nbytes());
  for (const auto& [name, tensors] : state.optimizer) {
    for (const torch::Tensor& tensor : tensors) memory.optimizer += static_cast<int64_t>(tensor.nbytes());
  }
}

}  // namespace sinew::train
