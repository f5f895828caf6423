// Keeps budget.time: measures what the parts of a run take, ends the training early enough for what follows it, and
// forecasts the end of the run.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/short_number.h"
#include "loop/one_run.h"

namespace sinew::loop {
namespace {

constexpr double kEndSeconds = 0.2;          // for the page, the report, and the end of the process
constexpr double kSlowDisk = 100e6;          // bytes a second; assumed until the first checkpoint was measured
constexpr double kBytesOfState = 12;         // for each parameter: itself and two averages, which most optimizers keep
constexpr double kSavesAtEnd = 2.5;          // one under way, the last one, and half of one for the model
constexpr double kEvaluationOfStep = 0.5;    // see evaluation_seconds
constexpr double kEvaluationMargin = 1.2;    // there are few evaluations, so the next one may be the longest
constexpr double kMostForEvaluation = 0.25;  // of the budget; a longer evaluation is not made after the last step
constexpr int64_t kWarningSteps = 10;        // a warning needs so many measured steps ...
constexpr double kWarningShare = 0.1, kWarningSeconds = 60;  // ... and so much of the budget, or so much time

std::string range_text(int64_t low, int64_t high) {
  return low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high);
}

}  // namespace

// Called at the beginning of each step, on every member, because each may have to lead.
void Run::measure_step(double at) {
  if (step_began_) steps_pace_.add(at - *step_began_ - evaluated_seconds_);
  step_began_ = at;
  evaluated_seconds_ = 0;
}

double Run::seconds_left() const {
  const double budget = plan_.job.budget.seconds;
  return budget > 0 ? budget - elapsed() : std::numeric_limits<double>::infinity();
}

// What an evaluation of so many samples takes at most. Until one was measured, a sample counts half as much as in a
// step, which also computes gradients.
double Run::evaluation_seconds(int64_t samples) const {
  const auto part = [&](int64_t of) {
    return static_cast<double>(samples) / static_cast<double>(std::max<int64_t>(1, of));
  };
  if (evaluations_pace_.is_measured())
    return kEvaluationMargin * evaluations_pace_.longest() * part(plan_.data.val_size);
  return kEvaluationOfStep * steps_pace_.longest() * part(trainer_.batch_size(state().step));
}

// After the last step, the leader evaluates alone, while the other workers of this machine have ended or wait.
double Run::evaluation_alone_seconds(int64_t samples) const {
  const auto workers = static_cast<double>(members_ ? std::max<int64_t>(1, options_.workers_here) : 1);
  return evaluation_seconds(samples) * workers;
}

// The time that is kept free for an evaluation after the last step. One that would take a large part of the budget is
// made only if there is time by chance.
double Run::kept_for_evaluation(int64_t samples) const {
  const double seconds = evaluation_alone_seconds(samples);
  return seconds <= kMostForEvaluation * plan_.job.budget.seconds ? seconds : 0;
}

double Run::saving_seconds() const {
  const double measured = writer_ ? writer_->status().save_seconds : 0;
  const double guess = static_cast<double>(plan_.parameters) * kBytesOfState / kSlowDisk;
  return kSavesAtEnd * (measured > 0 ? measured : guess);
}

// What follows the last step takes at most so long: saving, the last evaluation of the validation data, the threshold,
// the test and the report.
double Run::end_seconds() const {
  const double validation = kept_for_evaluation(plan_.data.val_size), test = kept_for_evaluation(plan_.data.test_size);
  const double threshold = plan_.job.threshold.metric.empty() ? 0 : validation;
  return saving_seconds() + validation + threshold + test + kEndSeconds;
}

bool Run::is_evaluated_at(int64_t step) const {
  if (plan_.data.val_size == 0) return false;
  return (evaluate_every_ && *evaluate_every_ > 0 && step % *evaluate_every_ == 0) ||
         (total_steps_ && step == *total_steps_);
}

// Returns why the training must end after the coming step, or "" if it need not.
std::string Run::why_budget_ends() const {
  const double left = seconds_left();
  if (left <= 0) return "budget.time is used up";
  if (!std::isfinite(left)) return "";
  Ahead ahead{.step = steps_pace_.longest(), .end = end_seconds()};
  if (must_stop(left, ahead)) return "budget.time is used up, except for " + short_seconds(left) + " to end the run";
  const double evaluation = evaluation_seconds(plan_.data.val_size);
  const int64_t step = state().step.value;
  if (is_evaluated_at(step + 1)) ahead.evaluation_after_step = evaluation;
  if (is_evaluated_at(step + 2)) ahead.evaluation_after_next_step = evaluation;
  if (!must_stop(left, ahead)) return "";
  return "budget.time leaves no time for the next evaluation, which takes about " + short_seconds(evaluation);
}

bool Run::has_time_to_evaluate() const {
  const double evaluation = evaluation_seconds(plan_.data.val_size);
  return !must_stop(seconds_left(), {steps_pace_.longest(), evaluation, 0, end_seconds()});
}

// The time of further steps, with the evaluations between them.
Range Run::steps_and_evaluations(int64_t steps) const {
  const Range of_steps = steps_pace_.of(static_cast<double>(steps));
  if (plan_.data.val_size == 0) return of_steps;
  const int64_t step = state().step.value;
  double evaluations = 0;
  if (evaluate_every_ && *evaluate_every_ > 0) {
    evaluations = static_cast<double>((step + steps) / *evaluate_every_ - step / *evaluate_every_);
    if (total_steps_ && step + steps == *total_steps_ && *total_steps_ % *evaluate_every_ != 0) evaluations += 1;
  } else if (plan_.job.trainer.eval_interval.unit == spec::Duration::Unit::seconds) {
    evaluations = (of_steps.low + of_steps.high) / 2 / plan_.job.trainer.eval_interval.amount;
  }
  if (evaluations_pace_.is_measured()) return of_steps + evaluations_pace_.of(evaluations);
  const double like_steps =
      evaluations * static_cast<double>(plan_.data.val_size) / static_cast<double>(trainer_.batch_size(state().step));
  const Range guess = steps_pace_.of(like_steps);  // a pass without gradients takes a part of it
  return of_steps + Range{0.4 * kEvaluationOfStep * guess.low, 1.6 * kEvaluationOfStep * guess.high};
}

// The time until the run ends. It needs a measured step.
Range Run::seconds_to_end() const {
  const double end = end_seconds(), left = seconds_left();
  const spec::Duration& whole = plan_.job.trainer.max_duration;
  Range range{0.2 * end, end};
  if (total_steps_) {
    range = range + steps_and_evaluations(*total_steps_ - state().step.value);
  } else if (whole.unit == spec::Duration::Unit::seconds) {
    const double rest = std::max(0.0, whole.amount - elapsed());
    range = range + Range{rest, rest};
  } else {
    range = {left, left};
  }
  // A budget ends the training at a step, so a part of it stays unused.
  const double unused = end + 2 * steps_pace_.longest() + evaluation_seconds(plan_.data.val_size);
  const double earliest = std::isfinite(left) ? left - unused : left;
  return {std::max(0.0, std::min(range.low, earliest)), std::max(0.0, std::min(range.high, left))};
}

// Says once, as soon as it is all but certain, that budget.time ends the training before its last step.
void Run::warn_of_short_budget() {
  const double budget = plan_.job.budget.seconds;
  if (warned_of_budget_ || budget <= 0 || !total_steps_ || steps_pace_.count() < kWarningSteps) return;
  if (steps_pace_.count() * steps_pace_.mean() < std::min(kWarningSeconds, kWarningShare * budget)) return;
  const int64_t steps = *total_steps_ - state().step.value;
  const Range all = steps_and_evaluations(steps);
  const double left = seconds_left(), end = end_seconds();
  if (steps <= 0 || all.low + 0.2 * end <= left) return;
  warned_of_budget_ = true;
  // in the time that is left for steps, as many fit as their part of the whole
  const auto reached = [&](double for_steps, double of_all) {
    const double more = std::floor(static_cast<double>(steps) * std::clamp(for_steps / of_all, 0.0, 1.0));
    return state().step.value + static_cast<int64_t>(more);
  };
  const int64_t low = reached(left - end, all.high), high = reached(left - 0.2 * end, all.low);
  const double whole = std::ceil(elapsed() + all.high + end);
  std::string text = "budget.time of " + short_seconds(budget) + " will end the training at step " +
                     range_text(low, high) + " of " + std::to_string(*total_steps_) + ". All steps need about " +
                     short_seconds(elapsed() + all.low + end, whole);
  if (plan_.job.scheduler.name != "constant") text += ", and the learning rate follows a schedule for all steps";
  text += ". Shorten trainer.max_duration, or train all steps with budget.time=" +
          to_string(spec::Duration{whole, spec::Duration::Unit::seconds});
  reporter_->say(report::Level::warning, "budget_short", text,
                 {{"steps_low", static_cast<double>(low)}, {"steps_high", static_cast<double>(high)}});
}

// Evaluates a split after the last step, when `then` seconds of work still follow. Returns nullopt if budget.time does
// not leave the time.
std::optional<EvaluationResult> Run::evaluate_in_time(data::Split split, double then) {
  if (plan_.job.budget.seconds <= 0) return trainer_.evaluate(split);
  const int64_t samples = split == data::Split::val ? plan_.data.val_size : plan_.data.test_size;
  if (seconds_left() < evaluation_alone_seconds(samples) + then) return std::nullopt;
  try {
    return trainer_.evaluate(split, [this, then] { return seconds_left() < then; });
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

}  // namespace sinew::loop
