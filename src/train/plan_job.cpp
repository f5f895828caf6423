// Measures a job in a short run, for a plan of the whole training.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/disk.h"
#include "base/error.h"
#include "base/machine.h"
#include "rundir/rundir.h"
#include "train/flop_count.h"
#include "train/lone_engine.h"
#include "train/machine_probe.h"
#include "train/resolve.h"
#include "train/short_run.h"
#include "train/train.h"

namespace sinew::train {
namespace {

constexpr int kLoads = 3;

// What a reader of the plan must know about the job.
std::vector<std::string> notes_of(const spec::Job& job) {
  std::vector<std::string> notes;
  if (job.workers.max > 1)
    notes.push_back("the plan is for one worker; the job starts up to " + std::to_string(job.workers.max));
  if (job.data.folds > 0) notes.push_back("the plan is for one of the " + std::to_string(job.data.folds) + " folds");
  if (!job.early_stopping.monitor.empty()) notes.push_back("early_stopping may end the training earlier");
  if (job.objective) notes.push_back("the objective may end the training earlier");
  if (!job.trainer.batch_size_ramp.empty())
    notes.push_back("the smaller batches of trainer.batch_size_ramp count like full ones");
  if (job.budget.kilowatt_hours > 0 && job.budget.watts <= 0)
    notes.push_back("budget.energy may end the training earlier: its power is known only while it trains");
  return notes;
}

int64_t product_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t outputs_of(const data::DataInfo& info) {
  return info.task == data::Task::regression ? product_of(info.target_shape) : info.classes;
}

advise::PlannedJob planned(const spec::Job& job, const data::DataInfo& info, const loop::Lengths& lengths) {
  const spec::TimeLimit limit = spec::time_limit(job.budget);
  advise::PlannedJob planned{.name = job.name,
                             .model = job.model.name,
                             .train_samples = info.train_size,
                             .val_samples = info.val_size,
                             .test_samples = info.test_size,
                             .batch_size = job.trainer.batch_size,
                             .steps_per_epoch = lengths.steps_per_epoch,
                             .steps = lengths.total_steps,
                             .budget_seconds = limit.seconds,
                             .budget_option = limit.option,
                             .chooses_threshold = !job.threshold.metric.empty(),
                             .usable_memory = static_cast<int64_t>(machine_memory()),
                             .shards = *job.trainer.shards,
                             .precision = job.trainer.precision,
                             .inputs = product_of(info.input_shape),
                             .outputs = outputs_of(info),
                             .length = info.tokens_per_sample,
                             .notes = notes_of(job)};
  if (job.trainer.max_duration.unit == spec::Duration::Unit::seconds)
    planned.max_seconds = job.trainer.max_duration.amount;
  const spec::Duration& interval = job.trainer.eval_interval;
  if (interval.unit == spec::Duration::Unit::seconds) planned.evaluate_every_seconds = interval.amount;
  if (const auto every = loop::steps_of(interval, lengths)) planned.evaluate_every = static_cast<double>(*every);
  const auto budget = loop::budget_steps(job, lengths);
  if (budget && (!planned.steps || *budget < *planned.steps)) {
    planned.steps = budget;
    planned.notes.push_back("budget.training ends the training after step " + std::to_string(*budget));
  }
  return planned;
}

// Counts the parameters, and the operations of the first step, on one lane.
void count_model(const spec::Job& job, const data::Dataset& dataset, advise::PlannedJob& planned,
                 advise::MeasuredRun& measured) {
  spec::Job alone = job;
  alone.trainer.lanes = 1;
  LoneEngine lone(alone, dataset);
  Engine& engine = lone.engine();
  const OperatorWork work = work_of([&] { engine.step(alone.optimizer.lr, /*want_norm=*/false); });
  measured.step_flops = work.flops;
  measured.step_bytes = work.bytes;
  measured.step_calls = work.calls;
  for (const auto& [name, tensor] : engine.replica(0).parameters()) {
    planned.parameters += tensor.numel();
    planned.trained_parameters += tensor.requires_grad() ? tensor.numel() : 0;
  }
}

// What report.json of the short run says.
void read_outcome(const rundir::Outcome& outcome, advise::MeasuredRun& measured) {
  measured.finished = outcome.status == "done";
  measured.steps = outcome.steps;
  if (outcome.memory) {
    measured.program_memory = outcome.memory->program;
    measured.data_memory = outcome.memory->data;
    measured.parameter_memory = outcome.memory->parameters;
    measured.optimizer_memory = outcome.memory->optimizer;
  }
  if (outcome.resources) measured.peak_memory = outcome.resources->peak_memory_bytes;
  if (outcome.resources) measured.cores = outcome.resources->cores;
  if (!outcome.time) return;
  const StageTimes& time = *outcome.time;
  const auto lanes = static_cast<double>(std::max<int64_t>(1, time.lanes));
  measured.lanes = time.lanes;
  measured.seconds = time.total() / lanes;
  measured.startup_seconds = time[Stage::startup] / lanes;
  measured.end_seconds = time[Stage::finish] / lanes;
  const double steps = time[Stage::data_wait] + time[Stage::forward] + time[Stage::backward] + time[Stage::reduction] +
                       time[Stage::imbalance] + time[Stage::optimizer] + time[Stage::loop];
  if (steps > 0) measured.forward_share = (time[Stage::data_wait] + time[Stage::forward]) / steps;
  if (outcome.steps > 0) measured.wait_seconds = time[Stage::data_wait] / lanes / static_cast<double>(outcome.steps);
  // a training of one step has no next one, at whose begin the step would be measured
  if (measured.step_seconds <= 0 && outcome.steps > 0)
    measured.step_seconds = steps / lanes / static_cast<double>(outcome.steps);
}

// The shortest time in which one thread reads the samples of a step.
double load_seconds(const spec::Job& job, const data::Dataset& dataset, Clock& clock) {
  std::vector<int64_t> samples(static_cast<size_t>(std::min(job.trainer.batch_size, dataset.size(data::Split::train))));
  std::iota(samples.begin(), samples.end(), 0);
  const data::SampleContext context{.seed = job.trainer.seed, .augment = true};
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kLoads; ++i) {
    const double began = clock.monotonic_seconds();
    dataset.load(data::Split::train, samples, context);
    shortest = std::min(shortest, clock.monotonic_seconds() - began);
  }
  return shortest;
}

// What a plan of other machines must know about this one.
void measure_machine(const spec::Job& job, const data::Dataset& dataset, advise::MeasuredRun& measured, Clock& clock) {
  const MachineProbe probe = probe_machine(measured.lanes, job.trainer.precision, clock);
  measured.peak_flops = probe.flops;
  measured.bandwidth = probe.bandwidth;
  measured.call_seconds = probe.call_seconds;
  measured.load_seconds = load_seconds(job, dataset, clock);
}

}  // namespace

advise::Plan plan_job(const RunOptions& run, double seconds, bool of_machine, Clock& clock) {
  // First, because the memory of whatever comes before would count as that of the run.
  const ShortRun made = short_run(run, seconds, clock);
  const RunResult& result = made.result;
  advise::MeasuredRun measured{.step_seconds = result.steps.mean(),
                               .step_error = result.steps.error(),
                               .evaluation_seconds = result.evaluations.mean(),
                               .save_seconds = result.save_seconds};
  read_outcome(made.outcome, measured);
  const auto dataset = open_data(run.job);
  const data::DataInfo& info = dataset->info();
  const spec::Job resolved = job_of(made, run, info);
  const loop::Lengths lengths = loop::lengths_of(resolved, info.train_size, info.tokens_per_sample);
  advise::PlannedJob wanted = planned(resolved, info, lengths);
  const std::string& precision = run.job.trainer.precision;
  wanted.precision_is_auto = precision == "auto" || precision == spec::kFastest;
  count_model(short_job(resolved, seconds), *dataset, wanted, measured);
  if (of_machine) measure_machine(resolved, *dataset, measured, clock);
  return advise::plan(wanted, measured);
}

}  // namespace sinew::train
