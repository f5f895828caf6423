// Says what limits a run and what would make it faster, from what the run has recorded about itself in report.json. It
// also says what a training will take, from what a short run of the job has shown.
//
// All functions are pure: the same record gives the same verdict. Each part of a verdict has its evidence in figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "advise/machines.h"
#include "base/experiment.h"
#include "base/load_use.h"
#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "forecast/forecast.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::advise {

// A figure that is not known exactly: the true value probably lies between low and high. In a plan for this machine it
// does in about 9 of 10 cases (docs/benchmarks.md). Gains and other machines have no measured coverage.
struct Estimate {
  double expected = 0, low = 0, high = 0;
  Estimate operator+(const Estimate& other) const {
    return {expected + other.expected, low + other.low, high + other.high};
  }
  Estimate operator*(double factor) const { return {expected * factor, low * factor, high * factor}; }
};

// ---- what limits a run ---------------------------------------------------------------------------------------------

// What an operator with inputs of certain sizes took in a step: a layer of the model, or several of the same size.
struct OperatorUse {
  std::string name;          // "convolution_backward 16x32x28x28 * 64x32x3x3"
  int64_t calls = 0;         // of this operator
  int64_t moving_calls = 0;  // those that move bytes themselves
  double seconds = 0;        // without the operators that it calls, unless it is a product
  double flops = 0;          // floating-point operations, if it is a product
  double bytes = 0;          // that it reads and writes, as if no cache kept anything
};

// The record of a run about itself, between its first step and its last one.
struct Record {
  StageTimes time;
  ResourceUse resources;
  LoadUse loading;
  std::vector<double> shares = {};  // see rundir::Outcome
  std::vector<ConditionTime> experiments = {};
  // Of a step of a measured job on one thread, the longest first; empty if they were not measured.
  std::vector<OperatorUse> operators = {};
  double peak_flops = 0, bandwidth = 0;  // of one thread of this machine: products, copies; 0: not measured
  std::optional<rundir::ModelUse> model = {};
  int64_t steps = 0;  // of the whole training; with `epochs`, says which epoch a step belongs to
  double epochs = 0;
  // All evaluations of the metric that decides, in a training that is over; empty if they are not known.
  forecast::Monitored monitored = {};
  std::vector<forecast::Evaluation> evaluations = {};
  double seconds() const;  // between the first step and the end of the last one
};
// Throws Error (ADVISE_NO_RECORD) if the report does not say where the time went; the folds of a cross-validation do.
// `run` is the name for messages.
Record record_of(const rundir::Outcome& outcome, const std::string& run);

// What came between two records of the same attempt: the verdict on it says what limits the run now. Returns nullopt if
// nothing came between them.
std::optional<Record> between(const Record& earlier, const Record& later);

// What the time of the lanes went to, between the start and the end of the run.
enum class Limit {
  input,          // waiting for samples
  compute,        // forward and backward passes, the optimizer
  bandwidth,      // the same, while it waits for the memory that the cores share; only an experiment shows it
  memory,         // waiting for memory, because the limit is reached: the kernel drops pages and reads them again
  communication,  // exchanging sums with other workers, and waiting for them
  straggler,      // work, and waiting, that another worker would have taken over if it were as fast as the fastest one
  imbalance,      // lanes that have done their part of a step wait for the others
  overhead,       // what is done between the steps, while no lane computes
  checkpoints,    // copies of the state for checkpoints
  starved,        // threads of the worker could have run, but had no core, or the CPU quota was used up
};
std::string_view name_of(Limit limit);  // "input-bound"

struct Part {
  Limit limit = Limit::compute;
  double share = 0;      // of the lanes' time between start and end, 0 to 1; the shares of all parts add up to 1
  std::string evidence;  // "the lanes waited for samples 3.1 s of 29.2 s"
  std::string stage;     // input, compute: the stage that took most of it ("decode", "backward"); else empty
};

struct Remedy {
  std::string what;
  Estimate gain;             // how much faster the training would be, as a fraction: 0.25 is 25 %
  bool keeps_result = true;  // true: the model stays the same to the last bit
  // Overrides of the job file that apply the remedy ("checkpoint.interval=20m"). Empty: it is not in the job file.
  std::vector<std::string> options = {};
  std::string effect = {};  // what it does to the model, if more than keeps_result is to be said
};

struct Verdict {
  std::vector<Part> parts;  // the largest first
  // The limits that a reader must know: the largest part, and each other one that takes a quarter of the time or more.
  std::vector<Limit> limits;
  std::vector<Remedy> remedies;  // the largest gain first; smaller models last
  // of the record
  std::vector<OperatorUse> operators = {};
  std::vector<ConditionTime> experiments = {};
  double peak_flops = 0, bandwidth = 0;
  double samples_per_second = 0;               // of a measured job; 0: not measured
  std::optional<rundir::ModelUse> model = {};  // of the run; nullopt: an older version has not counted it
  // Floating-point operations a second of each lane: in forward and backward passes, and in all the time of the run. 0:
  // not counted.
  double flops_in_passes = 0, flops_in_all = 0;
};

// Returns the verdict on a run. There are lanes, and time passed between start and end; all numbers are finite and none
// is negative. If `job` is null, no remedy names options; an option that is auto in it gets no remedy.
Verdict judge(const Record& record, const spec::Job* job = nullptr);

// The remedies that change the job file; if `change_result` is false, only those that keep the model as it is.
std::vector<Remedy> to_apply(const Verdict& verdict, bool change_result);
// How much faster a training is with all these remedies.
Estimate together(const std::vector<Remedy>& remedies);

// The predicted and the measured gain of the remedies of a job.
struct Applied {
  struct Change {
    std::string key, before, after, reason;
  };
  std::vector<Change> changes;
  std::string file;  // the changed job file
  Estimate predicted;
  double before = 0, after = 0;  // samples a second; after equals before until the changed job was measured
  double gain() const { return after / before - 1; }
  bool holds() const { return gain() >= predicted.low && gain() <= predicted.high; }
};
std::string applied_text(const Applied& applied);  // the changes and what they are predicted to gain
std::string measured_text(const Applied& applied);
std::string applied_json(const Verdict& verdict, const Applied& applied);

// For people and for programs; both end with a newline. If `running` names a run that trains, the text also has the
// commands that apply remedies to it.
std::string verdict_text(const Verdict& verdict, const StageTimes& time, const std::string& running = "");
std::string verdict_json(const Verdict& verdict);

// ---- what a training will take -------------------------------------------------------------------------------------

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
  double budget_seconds = 0;                  // the tightest limit of the budget; 0: no budget
  std::string budget_option = "budget.time";  // that sets it
  bool chooses_threshold = false;             // another evaluation of the validation data at the end
  int64_t usable_memory = 0;                  // bytes of this machine; 0: unknown
  int64_t shards = 1;                         // of a step; more lanes find no work
  std::string precision = "fp32";             // or bf16; of a step here
  bool precision_is_auto = false;             // another machine may choose another one
  // Of a sample: numbers that the model reads, and numbers that it computes; positions of a text, else 1.
  int64_t inputs = 0, outputs = 0, length = 1;
  std::vector<std::string> notes;  // what the plan leaves out, as sentences without a full stop
};

// The results of a short run of the job on this machine.
struct MeasuredRun {
  int64_t steps = 0, lanes = 0;
  double cores = 0;                          // that the run could use at the same time
  bool finished = false;                     // the training ended in this run
  double seconds = 0;                        // of the whole run
  double startup_seconds = 0;                // before the first step
  double step_seconds = 0;                   // mean of a step, with all that happens between two steps
  double step_error = 0;                     // how much the mean differs in another run, as a fraction
  double evaluation_seconds = 0;             // of the validation data; 0: not measured
  double forward_share = 0;                  // of a step: waiting for samples and the forward pass
  double save_seconds = 0, end_seconds = 0;  // of a checkpoint; of what follows the last step, without evaluations
  double wait_seconds = 0;                   // of a step: how long the lanes waited for samples
  double step_flops = 0;                  // floating-point operations of a step, forward and backward; 0: not counted
  double step_bytes = 0, step_calls = 0;  // that its operators read and write, and how many of them run
  // What this machine can do, measured for a plan of other machines; 0: not measured. All lanes together compute
  // products and copy memory; a call of an operator on tiny tensors; reading the samples of a step in one thread.
  double peak_flops = 0, bandwidth = 0, call_seconds = 0, load_seconds = 0;
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

// What the training will take on another machine (elsewhere.cpp says how it is estimated).
struct Elsewhere {
  MachineType machine;
  std::string why_not;  // why the job cannot run there: "needs 3.1 GiB of memory, has 2 GiB"; "" if it can
  std::string limit;    // what limits a step: compute, memory, calls, data
  Estimate step_seconds, seconds;
  Estimate steps;  // that the training makes
};
// Machines on which the job can run come first, the cheapest of them first; without any price, the fastest.
std::vector<Elsewhere> elsewhere(const Plan& plan, const MachineTable& table);
// What the estimates assume, as sentences.
std::vector<std::string> assumptions(const Plan& plan);

// How the work of a training with this model grows, with the figures of this job; "" for a model that is not built in.
std::string complexity(const PlannedJob& job);
// What to know before the model runs on a TPU, or in a runtime of small devices; empty: nothing is known.
std::vector<std::string> deployment_notes(const std::string& model);
// Whether to train anew on all data or to go on with new data, if so many samples come each day.
std::string retraining_advice(const Plan& plan, double samples_per_day);
// Returns the seconds of "nightly", "weekly", "monthly" or a time such as "6h". Throws UsageError.
double retraining_interval(const std::string& text);

struct PlanQuestions {
  double price = 0;            // of an hour of this machine, in any currency; 0: no cost is shown
  double within_seconds = 0;   // how much training fits into this time; 0: not asked
  double spend = 0;            // how much training this money buys; 0: not asked
  double retrain_seconds = 0;  // what training again after each such time costs in a month; 0: not asked
  double samples_per_day = 0;  // for retraining_advice(); 0: not asked
  std::optional<MachineTable> machines = {};
};
// How many steps fit into the time, with their evaluations, the start and the end.
Estimate steps_within(const Plan& plan, double seconds);
std::string plan_text(const Plan& plan, const PlanQuestions& questions);
std::string plan_json(const Plan& plan, const PlanQuestions& questions);

}  // namespace sinew::advise
