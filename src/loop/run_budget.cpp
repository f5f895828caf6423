// Keeps the limits of time, cost and energy. All of them are limits of time: the tightest one counts. So the file
// measures what the parts of a run take, ends the training early enough for what follows it, and forecasts the end of
// the run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/number_text.h"
#include "base/printable.h"
#include "base/short_number.h"
#include "loop/one_run.h"

namespace sinew::loop {
namespace {

constexpr double kEndSeconds = 0.2;          // for the page, the report, and the end of the process
constexpr double kSlowDisk = 100e6;          // bytes a second; assumed until the first checkpoint was measured
constexpr double kBytesOfState = 12;         // for each parameter: itself and two averages, which most optimizers keep
constexpr double kMostForGuess = 0.02;       // of the budget; an unmeasured checkpoint is not guessed to take longer
constexpr double kModelOfSave = 1;           // writing the model, and before that reading the best state
constexpr double kEvaluationOfStep = 0.5;    // see evaluation_seconds
constexpr double kFastEvaluation = 0.2;      // of the guess: how fast an unmeasured evaluation may be
constexpr double kEvaluationMargin = 1.2;    // there are few evaluations, so the next one may be the longest
constexpr double kMostForEvaluation = 0.25;  // of the budget; no time is kept free for a longer one
constexpr int64_t kWarningSteps = 4;         // a warning needs so many measured steps ...
constexpr double kWarningShare = 0.1, kWarningSeconds = 60;  // ... and so much of the budget, or so much time
// An estimate of the last step needs so many measured steps. It is made again after this part of the training, and
// counts if it differs by the last number.
constexpr int64_t kEstimateSteps = 3;
constexpr double kEstimateShare = 0.02, kEstimateChange = 0.01;
constexpr double kSharedMachine = 0.03;  // of the time, threads wait for a core: other programs use the machine, too
constexpr double kWarningLookSeconds = 1;
constexpr double kHour = 3600, kJoulesOfKilowattHour = 3.6e6;
constexpr double kPowerSeconds = 0.2;  // a power of a shorter time is noise
constexpr double kEnergySeconds = 1;   // seconds between two looks at the energy counters
constexpr double kStillSeconds = 10;   // a counter that stands still for so long measures nothing

std::string seconds_text(double seconds) {
  return seconds < 10 ? rounded_text(seconds, 2) + " s" : short_seconds(seconds);
}

std::string range_text(int64_t low, int64_t high) {
  return low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high);
}

// "budget.cost of 5": what the user has set.
std::string limit_text(const std::string& option, const spec::BudgetOptions& budget) {
  if (option == "budget.cost") return option + " of " + rounded_text(budget.cost);
  if (option == "budget.energy") return option + " of " + rounded_text(budget.kilowatt_hours) + " kWh";
  return option + " of " + short_seconds(budget.seconds);
}

}  // namespace

bool Run::asked_to_stop() const {
  return options_.stop_signals != nullptr && options_.stop_signals->load() > seen_stops_;
}

void Run::read_energy() {
  if (!options_.joules) return;
  const double at = now(), joules = options_.joules() - energy_.begin;
  if (at - energy_.at >= kPowerSeconds) energy_.newest_watts = (joules - energy_.used) / (at - energy_.at);
  energy_.at = at;
  energy_.used = joules;
}

void Run::look_at_energy() {
  if (options_.joules && now() >= energy_.at + kEnergySeconds) read_energy();
}

// Virtual machines may have counters that never move.
void Run::warn_of_still_counter() {
  if (!options_.joules || energy_.told_of_still || energy_.used > 0 || energy_.at < kStillSeconds) return;
  energy_.told_of_still = true;
  reporter_->say(report::Level::warning, "energy_not_measured",
                 "the energy counters of this machine have not moved for " + seconds_text(energy_.at) +
                     ", so budget.energy limits nothing; give budget.watts, the mean power of the machine");
}

// The larger one of the mean and the newest power counts: if the power rises, the mean would promise too much time.
double Run::watts() const {
  if (plan_.job.budget.watts > 0) return plan_.job.budget.watts;
  return energy_.at >= kPowerSeconds ? std::max(energy_.used / energy_.at, energy_.newest_watts) : 0;
}

spec::TimeLimit Run::budget() const {
  return spec::time_limit(plan_.job.budget, {energy_.before + energy_.used, before_ + energy_.at, watts()});
}

double Run::seconds_left() const {
  const double limit = budget().seconds;
  return limit > 0 ? limit - elapsed() : std::numeric_limits<double>::infinity();
}

// What a run has cost and used until its report, if a limit asks for it.
void Run::set_used(rundir::Outcome& outcome) {
  const spec::BudgetOptions& limits = plan_.job.budget;
  if (limits.cost > 0) outcome.cost = outcome.seconds / kHour * limits.price;
  if (limits.kilowatt_hours <= 0) return;
  read_energy();
  outcome.kilowatt_hours =
      (limits.watts > 0 ? limits.watts * outcome.seconds : energy_.before + energy_.used) / kJoulesOfKilowattHour;
}

// What an evaluation of so many samples rarely exceeds. Until one was measured, a sample counts half as much as in a
// step, which also computes gradients.
double Run::evaluation_seconds(int64_t samples) const {
  const auto part = [&](int64_t of) {
    return static_cast<double>(samples) / static_cast<double>(std::max<int64_t>(1, of));
  };
  if (pace_.evaluations().is_measured())
    return kEvaluationMargin * pace_.evaluations().longest() * part(plan_.data.val_size);
  return kEvaluationOfStep * pace_.steps().mean() * part(trainer_.batch_size(state().step));
}

// After the last step, the leader evaluates alone.
double Run::evaluation_alone_seconds(int64_t samples) const {
  return evaluation_seconds(samples) * static_cast<double>(members_ ? std::max<int64_t>(1, members_->computing()) : 1);
}

// The time that is kept free for an evaluation after the last step. One that would take a large part of the budget is
// made only if enough time happens to be left.
double Run::kept_for_evaluation(int64_t samples) const {
  const double seconds = evaluation_alone_seconds(samples), limit = budget().seconds;
  return limit <= 0 || seconds <= kMostForEvaluation * limit ? seconds : 0;
}

double Run::save_seconds() const {
  const double measured = writer_ ? writer_->status().save_seconds : 0;
  if (measured > 0) return measured;
  const double guess = static_cast<double>(plan_.parameters) * kBytesOfState / kSlowDisk, limit = budget().seconds;
  return limit > 0 ? std::min(guess, kMostForGuess * limit) : guess;
}

double Run::seconds_for_model() const {
  return kModelOfSave * save_seconds();
}

// What follows the last step rarely takes longer: the checkpoints that are under way or wait and the last one, the
// evaluation of the last step, the threshold, the model, its test and the report.
double Run::end_seconds() const {
  const double saves = kModelOfSave + 1 + (writer_ && writer_->status().writing ? 1 : 0) + (pending_best_ ? 1 : 0);
  const double validation = kept_for_evaluation(plan_.data.val_size), test = kept_for_evaluation(plan_.data.test_size);
  const double threshold = plan_.job.threshold.given() ? validation : 0;
  return saves * save_seconds() + validation + threshold + test + kEndSeconds;
}

// The last step of the training as it is planned; nullopt if a time ends it.
std::optional<int64_t> Run::last_step() const {
  if (total_steps_ && budget_steps_) return std::min(*total_steps_, *budget_steps_);
  return total_steps_ ? total_steps_ : budget_steps_;
}

bool Run::is_evaluated_at(int64_t step) const {
  if (plan_.data.val_size == 0) return false;
  return (evaluate_every_ && *evaluate_every_ > 0 && step % *evaluate_every_ == 0) ||
         (total_steps_ && step == *total_steps_);
}

// Returns why the training must end after the coming step, or "" if it need not. A request to stop takes effect after
// the step that is about to begin. So it is made now if there is no time for this step, the next one, and the end.
std::string Run::why_budget_ends() const {
  const double left = seconds_left();
  if (!std::isfinite(left)) return "";
  const int64_t step = state().step.value;
  const auto last = last_step();
  if (last && step + 1 >= *last) return "";  // it ends then anyway
  const std::string option = budget().option;
  if (left <= 0) return option + " is used up";
  const double end = end_seconds();
  // one duration says little: it may be that of a first step
  const double steps = pace_.steps().count() > 1 ? 2 * pace_.steps().longest() : 0;
  if (steps + end > left)
    return "the training ends now, because the end of the run needs the last " + seconds_text(left) + " of " + option;
  const bool measured = pace_.evaluations().is_measured();
  const double evaluation = evaluation_seconds(plan_.data.val_size) * (measured ? 1 : kFastEvaluation);
  const double evaluations =
      (is_evaluated_at(step + 1) ? evaluation : 0) + (is_evaluated_at(step + 2) ? evaluation : 0);
  // a state that was just evaluated is not evaluated again at the end
  const double saved = is_evaluated_at(step + 2) ? kept_for_evaluation(plan_.data.val_size) : 0;
  if (evaluations == 0 || steps + evaluations + end - saved <= left) return "";
  return option + " leaves no time for the next evaluation, which takes about " + seconds_text(evaluation);
}

// The part by which other programs may slow the rest of the training down or speed it up. If there are such programs
// now, they may go and others may come.
double Run::unseen_load() const {
  constexpr double kShared = 0.35, kQuiet = 0.1;
  if (options_.accounts == nullptr) return kShared;
  return options_.accounts->waiting_share() > kSharedMachine ? kShared : kQuiet;
}

// The evaluations in further steps, which take so long.
double Run::evaluations_in(int64_t steps, double seconds) const {
  const int64_t step = state().step.value;
  if (evaluate_every_ && *evaluate_every_ > 0) {
    const bool last_too = total_steps_ && step + steps == *total_steps_ && *total_steps_ % *evaluate_every_ != 0;
    return static_cast<double>((step + steps) / *evaluate_every_ - step / *evaluate_every_ + (last_too ? 1 : 0));
  }
  if (plan_.job.trainer.eval_interval.unit != spec::Duration::Unit::seconds) return 0;
  return seconds / plan_.job.trainer.eval_interval.amount;
}

// The time of further steps, with the evaluations between them.
Range Run::steps_and_evaluations(int64_t steps) const {
  const double unseen = unseen_load();
  const Range of_steps = pace_.steps().of(static_cast<double>(steps), unseen);
  if (plan_.data.val_size == 0) return of_steps;  // an evaluation then only sums up the training
  const double evaluations = evaluations_in(steps, (of_steps.low + of_steps.high) / 2);
  if (pace_.evaluations().is_measured()) return of_steps + pace_.evaluations().of(evaluations, unseen);
  const double like_steps =
      evaluations * static_cast<double>(plan_.data.val_size) / static_cast<double>(trainer_.batch_size(state().step));
  const Range guess = pace_.steps().of(like_steps, unseen);
  return of_steps + Range{kFastEvaluation * kEvaluationOfStep * guess.low, 2 * kEvaluationOfStep * guess.high};
}

// The time until the run ends. It needs a measured step.
Range Run::seconds_to_end() const {
  const double end = end_seconds(), left = seconds_left();
  const spec::Duration& whole = plan_.job.trainer.max_duration;
  Range range{0.2 * end, end};
  if (const auto last = last_step()) {
    range = range + steps_and_evaluations(std::max<int64_t>(0, *last - state().step.value));
  } else if (whole.unit == spec::Duration::Unit::seconds) {
    const double rest = std::max(0.0, whole.amount - elapsed());
    range = range + Range{rest, rest};
  } else {
    range = {left, left};
  }
  // A budget ends the training at a step, so a part of it stays unused.
  const double unused = end + 2 * pace_.steps().longest() + evaluation_seconds(plan_.data.val_size);
  const double earliest = std::isfinite(left) ? left - unused : left;
  return {std::max(0.0, std::min(range.low, earliest)), std::max(0.0, std::min(range.high, left))};
}

// The last step of the training: the planned one, or an earlier one if a time ends the training before. Returns 0 if
// nothing tells yet.
int64_t Run::expected_last_step() const {
  const spec::Duration& whole = plan_.job.trainer.max_duration;
  double left = seconds_left() - end_seconds();
  if (whole.unit == spec::Duration::Unit::seconds) left = std::min(left, whole.amount - elapsed());
  const auto last = last_step();
  const double each = pace_.seconds_of_step();
  if (!std::isfinite(left) || each <= 0) return last.value_or(0);
  constexpr double kMostSteps = 1e15;
  const int64_t reached = state().step.value + static_cast<int64_t>(std::clamp(left / each, 0.0, kMostSteps));
  return last ? std::min(*last, reached) : reached;
}

// Forecasts the best evaluation at the end of the run.
void Run::take_outlook() {
  const forecast::Monitored monitored = report::monitored_metric(plan_.job);
  const auto value = state().evaluation.last.find(monitored.metric);
  if (value == state().evaluation.last.end()) return;
  constexpr int64_t kLooks = 32;  // at learning rates to come
  const int64_t step = state().step.value;
  const double peak = plan_.job.optimizer.lr * state().control.learning_rate_factor(state().step);
  Ahead ahead{.last_step = expected_last_step(), .lowest_rate = std::numeric_limits<double>::infinity()};
  const int64_t steps = std::max<int64_t>(0, ahead.last_step - step);
  for (int64_t i = 1; i <= kLooks; ++i) {
    const double rate = peak * schedule_->factor(step + (steps * i - 1) / kLooks);
    ahead.lowest_rate = std::min(ahead.lowest_rate, rate);
    ahead.highest_rate = std::max(ahead.highest_rate, rate);
    ahead.mean_rate += rate / kLooks;
  }
  ahead.evaluations = evaluations_in(steps, static_cast<double>(steps) * pace_.seconds_of_step());
  if (steps > 0) ahead.evaluations = std::max(1.0, ahead.evaluations);  // the last step is evaluated in any case
  if (pace_.steps().is_measured()) {
    const Range left = seconds_to_end();
    if (std::isfinite(left.high)) {
      ahead.seconds_low = elapsed() + left.low;
      ahead.seconds_high = elapsed() + left.high;
    }
  }
  // The step that led to this state had the learning rate of the state before it.
  const double rate = peak * schedule_->factor(std::max<int64_t>(0, step - 1));
  state().outlook = look_ahead(std::move(state().outlook), monitored, {step, value->second, rate}, ahead);
}

// Says once, as soon as it is almost certain, that the budget ends the training before its last step.
void Run::warn_of_short_budget() {
  const spec::TimeLimit limit = budget();
  const auto last = last_step();
  if (limit.seconds <= 0 || !last || now() < next_budget_look_) return;
  next_budget_look_ = now() + kWarningLookSeconds;
  const std::string name = limit_text(limit.option, plan_.job.budget);
  if (state().outlook.short_budget == name) return;
  const double measured = static_cast<double>(pace_.steps().count()) * pace_.steps().mean();
  if (pace_.steps().count() < kWarningSteps || measured < std::min(kWarningSeconds, kWarningShare * limit.seconds))
    return;
  const int64_t steps = *last - state().step.value;
  const Range all = steps_and_evaluations(steps);
  const double left = seconds_left(), end = end_seconds();
  if (steps <= 0 || all.low + 0.2 * end <= left) return;
  state().outlook.short_budget = name;
  // in the time that is left for steps, as many fit as their part of the whole
  const auto reached = [&](double for_steps, double of_all) {
    const double more = std::floor(static_cast<double>(steps) * std::clamp(for_steps / of_all, 0.0, 1.0));
    return state().step.value + static_cast<int64_t>(more);
  };
  const double unused = 2 * pace_.steps().longest() + evaluation_seconds(plan_.data.val_size);
  const int64_t low = reached(left - end - unused, all.high), high = reached(left - 0.2 * end, all.low);
  const double whole = std::ceil(elapsed() + all.high + end), least = elapsed() + all.low + end;
  std::string text = name +
                     (limit.option == "budget.time" ? "" : ", enough for " + short_seconds(limit.seconds) + ",") +
                     " will end the training at step " + range_text(low, high) + " of " + std::to_string(*last) +
                     ". All steps would take about " + short_seconds(least, whole) + " together.";
  if (plan_.job.scheduler.name != "constant")
    text += " The schedule of the learning rate is made for all steps; to let it reach its end in this budget, begin " +
            std::string("with trainer.max_duration=") + std::to_string(std::max<int64_t>(1, low)) + "st.";
  text += " To train on after the end: sinew resume " + shell_quoted(options_.run_directory) + " " +
          spec::budget_setting(limit.option, plan_.job.budget, whole, watts());
  reporter_->say(report::Level::warning, "budget_short", text,
                 {{"steps_low", static_cast<double>(low)},
                  {"steps_high", static_cast<double>(high)},
                  {"seconds_low", least},
                  {"seconds_high", whole}});
}

// If trainer.max_duration is a time, the schedule of the learning rate follows an estimate of the last step. The leader
// makes it from the pace, and again while the training goes on. As an entry of the control log it is part of the state,
// so all members and every resume have the same schedule.
void Run::estimate_last_step() {
  const spec::Duration& whole = plan_.job.trainer.max_duration;
  const Pace& steps = pace_.steps();
  if (whole.unit != spec::Duration::Unit::seconds || !needs_last_step(plan_.job.scheduler)) return;
  if (steps.count() < kEstimateSteps || now() < next_estimate_) return;
  next_estimate_ = now() + kEstimateShare * whole.amount;
  const double more = std::max(0.0, whole.amount - elapsed()) / std::max(pace_.seconds_of_step(), 1e-9);
  const double last = std::round(static_cast<double>(state().step.value) + 1 + more);
  const auto before = state().control.schedule_steps(state().step);
  if (before && std::abs(last - static_cast<double>(*before)) < kEstimateChange * last) return;
  request(ControlEntry::Kind::schedule_steps, last, "");
}

// Evaluates a split after the last step, when `then` seconds of work still follow. Returns nullopt if the budget does
// not leave the time, and if a signal asks to stop. An evaluation whose time is only guessed is tried, because it can
// be given up.
std::optional<EvaluationResult> Run::evaluate_in_time(data::Split split, double then) {
  const int64_t samples = split == data::Split::val ? plan_.data.val_size : plan_.data.test_size;
  const double needed = pace_.evaluations().is_measured() ? evaluation_alone_seconds(samples) : 0;
  if (seconds_left() < needed + then) return std::nullopt;
  const double began = now();
  try {
    auto result = trainer_.evaluate(split, [this, then] {
      const std::scoped_lock one_lane(energy_.mutex);
      look_at_energy();
      return seconds_left() < then || asked_to_stop();
    });
    if (split == data::Split::val && !members_) pace_.evaluated(now() - began);
    return result;
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

}  // namespace sinew::loop
