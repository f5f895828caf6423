#include <algorithm>
#include <cmath>

#include "advise/advise.h"
#include "base/check.h"

namespace sinew::advise {
namespace {

// Relative errors that more measuring does not reduce, because a short run differs from a long one.
constexpr double kErrorOfSteps = 0.1, kErrorOfStart = 0.3, kErrorOfEvaluation = 0.15, kErrorOfGuess = 0.5;
constexpr double kErrorOfEnd = 0.5;
constexpr double kErrorOfSeconds = 0.3;  // seconds; added to both ends of the total
// The memory of a longer run: allocators keep some of what was freed, and batches are loaded in advance.
constexpr double kLeastMemory = 0.95, kMostMemory = 1.12;

Estimate about(double value, double error) {
  return {value, value * (1 - error), value * (1 + error)};
}

// How often the validation data are evaluated in so many steps. `ends`: the training ends with the last of them.
double evaluations_in(const PlannedJob& job, double steps, double step_seconds, bool ends) {
  if (job.val_samples == 0 || steps <= 0) return 0;
  const double last = ends ? 1 : 0;
  if (job.evaluate_every_seconds > 0) return std::floor(steps * step_seconds / job.evaluate_every_seconds) + last;
  if (job.evaluate_every <= 0) return last;
  return ends ? std::ceil(steps / job.evaluate_every - 1e-9) : std::floor(steps / job.evaluate_every);
}

Estimate pass_of(const PlannedJob& job, const MeasuredRun& measured, int64_t samples) {
  if (samples == 0) return {};
  if (measured.evaluation_seconds > 0 && job.val_samples > 0) {
    const double part = static_cast<double>(samples) / static_cast<double>(job.val_samples);
    return about(measured.evaluation_seconds * part, kErrorOfEvaluation);
  }
  const double batches = static_cast<double>(samples) / static_cast<double>(std::max<int64_t>(1, job.batch_size));
  return about(batches * measured.step_seconds * measured.forward_share, kErrorOfGuess);
}

Estimate one_step(const MeasuredRun& measured) {
  return about(measured.step_seconds, std::hypot(kErrorOfSteps, measured.step_error));
}

// The time of a step and of its part of the evaluations.
double step_with_evaluations(const PlannedJob& job, double step, double pass) {
  if (job.evaluate_every_seconds > 0) return step * (1 + pass / job.evaluate_every_seconds);
  return job.evaluate_every > 0 ? step + pass / job.evaluate_every : step;
}

Estimate bounded(const Estimate& estimate, double low, double high) {
  return {std::min(estimate.expected, high), std::min(estimate.low, low), std::min(estimate.high, high)};
}

}  // namespace

Plan plan(const PlannedJob& job, const MeasuredRun& measured) {
  SINEW_CHECK(measured.steps > 0 && measured.step_seconds > 0, measured.step_seconds);
  Plan plan{.job = job, .measured = measured};
  plan.startup = about(measured.startup_seconds, kErrorOfStart);
  const Estimate validation = pass_of(job, measured, job.val_samples), step = one_step(measured);
  plan.end =
      about(measured.end_seconds + measured.save_seconds, kErrorOfEnd) + pass_of(job, measured, job.test_samples);
  if (job.chooses_threshold) plan.end = plan.end + validation;
  // a time ends a training between two steps, and it ends late by a step or an evaluation
  const double late = 2 * step.high + validation.high;
  if (job.steps) {
    const auto steps = static_cast<double>(*job.steps);
    plan.evaluation_count = evaluations_in(job, steps, measured.step_seconds, true);
    plan.steps = step * steps;
    plan.evaluations = validation * plan.evaluation_count;
    plan.seconds = plan.startup + plan.steps + plan.evaluations + plan.end;
  } else {
    const double left = std::max(0.0, job.max_seconds - measured.startup_seconds);
    const double steps = left / step_with_evaluations(job, measured.step_seconds, validation.expected);
    plan.evaluation_count = evaluations_in(job, steps, measured.step_seconds, false);
    plan.evaluations = validation * plan.evaluation_count;
    plan.steps = about(std::max(0.0, left - plan.evaluations.expected), 0);
    plan.seconds = Estimate{job.max_seconds, job.max_seconds, job.max_seconds + late} + plan.end;
  }
  if (measured.finished) plan.seconds = about(measured.seconds, kErrorOfSteps);
  plan.seconds.low = std::max(0.0, plan.seconds.low - kErrorOfSeconds);
  plan.seconds.high += kErrorOfSeconds;
  // a training ends before its budget, to have time for the end
  if (job.budget_seconds > 0)
    plan.seconds = bounded(plan.seconds, std::max(0.0, job.budget_seconds - plan.end.high - late), job.budget_seconds);
  const auto peak = static_cast<double>(measured.peak_memory);
  plan.memory = {peak, peak * kLeastMemory, peak * kMostMemory};
  return plan;
}

Estimate steps_within(const Plan& plan, double seconds) {
  const Estimate step = one_step(plan.measured), pass = pass_of(plan.job, plan.measured, plan.job.val_samples);
  const auto fit = [&](double startup, double end, double of_step, double of_pass) {
    const double left = seconds - startup - end;
    return std::max(0.0, std::floor(left / step_with_evaluations(plan.job, of_step, of_pass)));
  };
  return {fit(plan.startup.expected, plan.end.expected, step.expected, pass.expected),
          fit(plan.startup.high, plan.end.high, step.high, pass.high),
          fit(plan.startup.low, plan.end.low, step.low, pass.low)};
}

}  // namespace sinew::advise
