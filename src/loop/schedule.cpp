#include "loop/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "data/data.h"

namespace sinew::loop {
namespace {

// One-cycle schedule (Smith and Topin 2018) with the constants of PyTorch's OneCycleLR.
constexpr double kOneCycleStart = 1.0 / 25.0, kOneCycleEnd = 1.0 / 25.0 / 1e4, kOneCycleRise = 0.3;

// A last step that is not known yet is far away. A warm-up that is a part of the training then hardly begins.
constexpr int64_t kNotEstimated = int64_t{1} << 50;

double cosine_between(double from, double to, double progress) {
  return to + (from - to) * 0.5 * (1.0 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
}

// Four waves, each twice as long as the one before: 0.5 (1 - cos(2 pi log2(1 + 15 t))) ("coslog4" in Holzmueller,
// Grinsztajn and Steinwart 2024).
double four_waves(double progress) {
  const double wave = std::log2(1.0 + 15.0 * std::clamp(progress, 0.0, 1.0));
  return 0.5 * (1.0 - std::cos(2.0 * std::numbers::pi * wave));
}

// The sine of an angle in [-pi/2, pi/2] by its power series, which is exact to about 1e-13. All operations are basic
// ones, so every machine gets the same bits.
double sine(double angle) {
  const double square = angle * angle;
  double sum = 0;
  for (int n = 17; n >= 1; n -= 2) sum = 1.0 - sum * square / static_cast<double>((n + 1) * (n + 2));
  return angle * sum;
}

// Returns the lengths with which trainer.max_duration is converted to steps.
Lengths lengths_without_total(const spec::TrainerOptions& trainer, int64_t train_size, int64_t tokens_per_sample) {
  const int64_t steps = data::steps_per_epoch(train_size, trainer.batch_size, trainer.drop_last);
  return {train_size, trainer.batch_size, steps, tokens_per_sample, {}};
}

}  // namespace

std::optional<int64_t> steps_of(const spec::Duration& duration, const Lengths& lengths) {
  using Unit = spec::Duration::Unit;
  double steps = 0;
  switch (duration.unit) {
    case Unit::steps: steps = duration.amount; break;
    case Unit::epochs: steps = std::round(duration.amount * static_cast<double>(lengths.steps_per_epoch)); break;
    case Unit::samples: steps = std::floor(duration.amount / static_cast<double>(lengths.batch_size)); break;
    case Unit::tokens:
      steps = std::floor(duration.amount / static_cast<double>(lengths.batch_size * lengths.tokens_per_sample));
      break;
    case Unit::fraction:
      if (!lengths.total_steps) return std::nullopt;
      steps = std::floor(duration.amount * static_cast<double>(*lengths.total_steps) + 1e-9);
      break;
    case Unit::seconds: return std::nullopt;
  }
  if (steps <= 0) return duration.amount > 0 ? 1 : 0;
  return static_cast<int64_t>(steps);
}

Lengths lengths_of(const spec::Job& job, int64_t train_size, int64_t tokens_per_sample) {
  Lengths lengths = lengths_without_total(job.trainer, train_size, tokens_per_sample);
  if (lengths.steps_per_epoch == 0) {
    throw Error("TRAIN_EPOCH_TOO_SMALL",
                "an epoch has no full batch: " + std::to_string(train_size) + " training samples, batch_size " +
                    std::to_string(job.trainer.batch_size),
                "use a smaller trainer.batch_size, or trainer.drop_last: false");
  }
  lengths.total_steps = steps_of(job.trainer.max_duration, lengths);
  if (!job.trainer.batch_size_ramp.empty()) {
    const BatchSizes sizes(job.trainer, train_size, tokens_per_sample);
    lengths.total_steps = count_steps(job.trainer, lengths, [&](int64_t step) { return sizes.at(step); });
  }
  return lengths;
}

// The budget and the evaluation interval may both be fractions of an epoch, and each is rounded to steps. A budget that
// is a multiple of the interval is counted in evaluations; otherwise the run could end just before its last evaluation.
std::optional<int64_t> budget_steps(const spec::Job& job, const Lengths& lengths) {
  const auto budget = spec::parse_duration(job.budget.training);
  if (!budget) return std::nullopt;
  const spec::Duration& interval = job.trainer.eval_interval;
  const auto evaluate_every = steps_of(interval, lengths);
  const double evaluations = budget->amount / interval.amount;
  const bool multiple = std::abs(evaluations - std::round(evaluations)) < 1e-9 * evaluations;
  if (evaluate_every && budget->unit == interval.unit && multiple) return std::llround(evaluations) * *evaluate_every;
  return steps_of(*budget, lengths);
}

BatchSizes::BatchSizes(const spec::TrainerOptions& trainer, int64_t train_size, int64_t tokens_per_sample)
    : ramp_(trainer.batch_size_ramp), final_size_(trainer.batch_size) {
  const auto stage =
      steps_of(trainer.batch_size_ramp_interval, lengths_without_total(trainer, train_size, tokens_per_sample));
  stage_ = std::max<int64_t>(1, stage.value_or(1));
}

int64_t BatchSizes::at(int64_t step) const {
  const auto stage = static_cast<size_t>(step / stage_);
  return stage < ramp_.size() ? ramp_[stage] : final_size_;
}

std::optional<int64_t> count_steps(const spec::TrainerOptions& trainer, const Lengths& lengths,
                                   const std::function<int64_t(int64_t)>& size_at) {
  using Unit = spec::Duration::Unit;
  const auto [amount, unit] = trainer.max_duration;
  if (unit != Unit::epochs && unit != Unit::samples && unit != Unit::tokens) return steps_of({amount, unit}, lengths);
  const auto per_sample = static_cast<double>(unit == Unit::tokens ? lengths.tokens_per_sample : 1);
  data::Cursor cursor;
  int64_t step = 0, samples = 0;
  while (true) {
    const int64_t size = size_at(step);
    const data::StepRange range = data::step_range(cursor, lengths.train_size, size, trainer.drop_last);
    const double epochs =
        static_cast<double>(range.epoch) + static_cast<double>(range.first) / static_cast<double>(lengths.train_size);
    const bool over =
        unit == Unit::epochs ? epochs >= amount : static_cast<double>(samples + range.count) * per_sample > amount;
    if (over) return std::max<int64_t>(1, step);
    cursor = data::after(range, lengths.train_size, size, trainer.drop_last);
    samples += range.count;
    ++step;
  }
}

bool needs_last_step(const spec::SchedulerOptions& options) {
  using Unit = spec::Duration::Unit;
  const bool by_name =
      options.name == "cosine" || options.name == "linear" || options.name == "one_cycle" || options.name == "coslog4";
  return by_name || (options.warmup.unit == Unit::fraction && options.warmup.amount > 0) ||
         (options.name == "step" && options.step_size.unit == Unit::fraction);
}

Schedule::Schedule(const spec::SchedulerOptions& options, Lengths lengths)
    : name_(options.name), gamma_(options.gamma), final_factor_(options.final_factor) {
  if (!lengths.total_steps) lengths.total_steps = kNotEstimated;
  total_ = *lengths.total_steps;
  const auto warmup = steps_of(options.warmup, lengths), step_size = steps_of(options.step_size, lengths);
  if (!warmup || !step_size) {
    throw Error("TRAIN_SCHEDULE_INVALID", "scheduler.warmup and scheduler.step_size cannot be times",
                "use st, ep, sp or tok");
  }
  warmup_ = *warmup;
  step_size_ = std::max<int64_t>(1, *step_size);
  if (name_ == "one_cycle" && warmup_ == 0) warmup_ = static_cast<int64_t>(kOneCycleRise * static_cast<double>(total_));
}

double Schedule::shape(int64_t step) const {
  const double progress =
      total_ > warmup_ ? static_cast<double>(step - warmup_) / static_cast<double>(total_ - warmup_) : 1.0;
  if (name_ == "cosine") return cosine_between(1.0, final_factor_, progress);
  if (name_ == "linear") return 1.0 + (final_factor_ - 1.0) * std::clamp(progress, 0.0, 1.0);
  if (name_ == "one_cycle") return cosine_between(1.0, kOneCycleEnd, progress);
  if (name_ == "coslog4") return four_waves(progress);
  if (name_ == "step") return std::pow(gamma_, static_cast<double>(step / step_size_));
  return 1.0;
}

double Schedule::factor(int64_t step) const {
  if (step >= warmup_) return shape(step);
  const double progress = static_cast<double>(step + 1) / static_cast<double>(warmup_);
  return name_ == "one_cycle" ? cosine_between(kOneCycleStart, 1.0, progress) : progress;
}

double decline(const std::string& name, int64_t step, int64_t total_steps) {
  if (name == "constant") return 1.0;
  const double progress = static_cast<double>(step) / static_cast<double>(total_steps);
  if (progress <= 0.5) return 1.0;
  // The rounding of the series must not make the last factors negative.
  return std::max(0.0, 0.5 * (1.0 - sine(std::numbers::pi * (2.0 * std::min(progress, 1.0) - 1.5))));
}

void check_declines(const spec::Job& job, const Lengths& lengths) {
  const auto check = [&](const std::string& name, const char* key) {
    if (name == "constant" || lengths.total_steps) return;
    throw Error("TRAIN_SCHEDULE_INVALID",
                std::string(key) + ": " + name + " needs to know the last step, but trainer.max_duration is a time",
                "give trainer.max_duration in ep, st, sp or tok (and a time limit as budget.time), or use " +
                    std::string(key) + ": constant");
  };
  if (job.model.name == "tabular") check(job.model.tabular.dropout_schedule, "model.dropout_schedule");
  check(job.optimizer.weight_decay_schedule, "optimizer.weight_decay_schedule");
}

}  // namespace sinew::loop
