// Says what limits a run and what would make it faster, from what the run has recorded about itself in report.json. It
// also says what a training will take, from what a short run of the job has shown.
//
// All functions are pure: the same record gives the same verdict. Each part of a verdict has its evidence in figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "rundir/rundir.h"

namespace sinew::advise {

// What the time of the lanes went to, between the start and the end of the run.
enum class Limit {
  input,          // waiting for samples
  compute,        // forward and backward passes, the optimizer
  communication,  // exchanging sums with other workers, and waiting for them
  imbalance,      // lanes that have done their part of a step wait for the others
  overhead,       // what is done between the steps, while no lane computes
  checkpoints,    // copying the state
  starved,        // threads of the worker could have run, but had no core, or the CPU quota was used up
};
std::string_view name_of(Limit limit);  // "input-bound"

struct Part {
  Limit limit = Limit::compute;
  double share = 0;      // of the lanes' time between start and end, 0 to 1; the shares of all parts add up to 1
  std::string evidence;  // "the lanes waited for samples 3.1 s of 29.2 s"
};

struct Remedy {
  std::string what;
  // The training would be at most so much faster, as a fraction: 0.25 is 25 %. It is a bound: what the remedy is for
  // would take no time at all.
  double at_most = 0;
  bool keeps_result = true;  // true: the model stays the same to the last bit
};

struct Verdict {
  std::vector<Part> parts;  // the largest first
  // The limits that a reader must know: the largest part, and each other one that takes a quarter of the time or more.
  std::vector<Limit> limits;
  std::vector<Remedy> remedies;
};

// Returns the verdict on a run that took these times. There are lanes, and time passed between start and end; all
// numbers are finite and none is negative.
Verdict judge(const StageTimes& time, const ResourceUse& resources);

// Throws Error (ADVISE_NO_RECORD) if the report does not say where the time went; the folds of a cross-validation do.
// `run` is the name for messages.
Verdict judge(const rundir::Outcome& outcome, const std::string& run);

// For people and for programs; both end with a newline.
std::string verdict_text(const Verdict& verdict, const StageTimes& time);
std::string verdict_json(const Verdict& verdict);

// ---- what a training will take -------------------------------------------------------------------------------------

// A figure that is not known exactly. The true value lies between low and high with a probability of about 90 %.
struct Estimate {
  double expected = 0, low = 0, high = 0;
  Estimate operator+(const Estimate& other) const {
    return {expected + other.expected, low + other.low, high + other.high};
  }
};

// What a job asks for.
struct PlannedJob {
  std::string name, model;
  int64_t parameters = 0, trained_parameters = 0;  // numbers
  int64_t train_samples = 0, val_samples = 0, test_samples = 0;
  int64_t batch_size = 0, steps_per_epoch = 0;
  std::optional<int64_t> steps;  // nullopt: the training ends after max_seconds
  double max_seconds = 0;
  // Between two evaluations of the validation data, in steps or in seconds; both 0: only after the last step.
  double evaluate_every = 0, evaluate_every_seconds = 0;
  double budget_seconds = 0;       // budget.time; 0: no budget
  bool chooses_threshold = false;  // another evaluation of the validation data at the end
  int64_t usable_memory = 0;       // bytes of this machine; 0: unknown
  std::vector<std::string> notes;  // what the plan leaves out, as sentences without a full stop
};

// The results of a short run of the job on this machine.
struct MeasuredRun {
  int64_t steps = 0, lanes = 0;
  bool finished = false;                     // the training ended in this run
  double seconds = 0;                        // of the whole run
  double startup_seconds = 0;                // before the first step
  double step_seconds = 0;                   // mean of a step, with all that happens between two steps
  double step_error = 0;                     // how much the mean differs in another run, as a fraction
  double evaluation_seconds = 0;             // of the validation data; 0: not measured
  double forward_share = 0;                  // of a step: waiting for samples and the forward pass
  double save_seconds = 0, end_seconds = 0;  // of a checkpoint; of what follows the last step, without evaluations
  double step_flops = 0;  // floating-point operations of a step, forward and backward; 0: not counted
  // bytes
  int64_t program_memory = 0;  // before the data are opened
  int64_t data_memory = 0;     // of the opened data
  int64_t parameter_memory = 0, optimizer_memory = 0;
  int64_t peak_memory = 0;  // the most that the run used, all of it
};

struct Plan {
  PlannedJob job;
  MeasuredRun measured;
  Estimate startup, steps, evaluations, end, seconds;  // seconds: of the whole run
  Estimate memory;                                     // bytes, the most at any time
  double evaluation_count = 0;
};
Plan plan(const PlannedJob& job, const MeasuredRun& measured);

struct PlanQuestions {
  double price = 0;           // of an hour of this machine, in any currency; 0: no cost is shown
  double within_seconds = 0;  // how much training fits into this time; 0: not asked
};
// How many steps fit into the time, with their evaluations, the start and the end.
Estimate steps_within(const Plan& plan, double seconds);
std::string plan_text(const Plan& plan, const PlanQuestions& questions);
std::string plan_json(const Plan& plan, const PlanQuestions& questions);

}  // namespace sinew::advise
