#include <algorithm>
#include <cmath>

#include "advise/advise.h"
#include "base/check.h"

namespace sinew::advise {
namespace {

// Parts of a figure by which it may be wrong, however often it was measured: a short run is not the long one.
constexpr double kErrorOfSteps = 0.1, kErrorOfStart = 0.3, kErrorOfEvaluation = 0.15, kErrorOfGuess = 0.5;
constexpr double kErrorOfEnd = 0.5;
constexpr double kErrorOfSeconds = 0.3;  // seconds; of the whole, because the system's clock and caches add some
// The memory of a longer run: allocators keep some of what was freed, and batches wait.
constexpr double kLeastMemory = 0.95, kMostMemory = 1.12;

Estimate about(double value, double error) {
  return {value, value * (1 - error), value * (1 + error)};
}

// How often the validation data are evaluated before a step count is reached.
double evaluations_in(const PlannedJob& job, double steps) {
  if (job.val_samples == 0 || steps <= 0) return 0;
  return job.evaluate_every > 0 ? std::ceil(steps / job.evaluate_every - 1e-9) : 1;
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

Estimate times(const Estimate& one, double count) {
  return {one.expected * count, one.low * count, one.high * count};
}

Estimate one_step(const MeasuredRun& measured) {
  return about(measured.step_seconds, std::hypot(kErrorOfSteps, measured.step_error));
}

}  // namespace

Plan plan(const PlannedJob& job, const MeasuredRun& measured) {
  SINEW_CHECK(measured.steps > 0 && measured.step_seconds > 0, measured.step_seconds);
  Plan plan{.job = job, .measured = measured};
  plan.startup = about(measured.startup_seconds, kErrorOfStart);
  const Estimate validation = pass_of(job, measured, job.val_samples);
  plan.end =
      about(measured.end_seconds + measured.save_seconds, kErrorOfEnd) + pass_of(job, measured, job.test_samples);
  if (job.steps) {
    plan.evaluation_count = evaluations_in(job, static_cast<double>(*job.steps));
    plan.steps = times(one_step(measured), static_cast<double>(*job.steps));
    plan.evaluations = times(validation, plan.evaluation_count);
  } else {
    // the steps and evaluations share the time
    const Estimate both = about(std::max(0.0, job.max_seconds - measured.startup_seconds), 0);
    const double steps = steps_within(plan, job.max_seconds).expected;
    plan.evaluation_count = evaluations_in(job, steps);
    plan.evaluations = times(validation, plan.evaluation_count);
    plan.steps = about(std::max(0.0, both.expected - plan.evaluations.expected), 0);
  }
  plan.seconds = plan.startup + plan.steps + plan.evaluations + plan.end;
  if (measured.finished) plan.seconds = about(measured.seconds, kErrorOfSteps);
  plan.seconds.low = std::max(0.0, plan.seconds.low - kErrorOfSeconds);
  plan.seconds.high += kErrorOfSeconds;
  if (job.budget_seconds > 0) {
    for (double* one : {&plan.seconds.expected, &plan.seconds.low, &plan.seconds.high})
      *one = std::min(*one, job.budget_seconds);
  }
  const auto peak = static_cast<double>(measured.peak_memory);
  plan.memory = {peak, peak * kLeastMemory, peak * kMostMemory};
  return plan;
}

Estimate steps_within(const Plan& plan, double seconds) {
  const Estimate step = one_step(plan.measured), pass = pass_of(plan.job, plan.measured, plan.job.val_samples);
  const double every = plan.job.evaluate_every > 0 ? plan.job.evaluate_every : HUGE_VAL;
  const auto fit = [&](double startup, double end, double of_step, double of_pass) {
    const double left = seconds - startup - end - (std::isinf(every) ? of_pass : 0);
    return std::max(0.0, std::floor(left / (of_step + of_pass / every)));
  };
  return {fit(plan.startup.expected, plan.end.expected, step.expected, pass.expected),
          fit(plan.startup.high, plan.end.high, step.high, pass.high),
          fit(plan.startup.low, plan.end.low, step.low, pass.low)};
}

}  // namespace sinew::advise
