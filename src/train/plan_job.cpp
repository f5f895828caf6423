// Measures a job in a short run, for a plan of the whole training.
#include <algorithm>
#include <cmath>

#include "base/disk.h"
#include "base/error.h"
#include "base/machine.h"
#include "rundir/rundir.h"
#include "train/flop_count.h"
#include "train/lone_engine.h"
#include "train/resolve.h"
#include "train/train.h"

namespace sinew::train {
namespace {

// The job with nothing that would end a short run early or write elsewhere. Its schedules stay those of the whole
// training. Each step has the final batch size.
spec::Job short_job(spec::Job job, double seconds) {
  job.budget.seconds = seconds;
  job.budget.training = "never";
  job.trainer.batch_size_ramp.clear();
  job.objective.reset();
  job.early_stopping.monitor.clear();
  job.checkpoint.mirror.clear();
  job.checkpoint.keep = 1;
  job.checkpoint.keep_best = 0;
  job.logging.tensorboard = false;
  return job;
}

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
  return notes;
}

advise::PlannedJob planned(const spec::Job& job, const data::DataInfo& info, const loop::Lengths& lengths) {
  advise::PlannedJob planned{.name = job.name,
                             .model = job.model.name,
                             .train_samples = info.train_size,
                             .val_samples = info.val_size,
                             .test_samples = info.test_size,
                             .batch_size = job.trainer.batch_size,
                             .steps_per_epoch = lengths.steps_per_epoch,
                             .steps = lengths.total_steps,
                             .budget_seconds = job.budget.seconds,
                             .chooses_threshold = !job.threshold.metric.empty(),
                             .usable_memory = static_cast<int64_t>(machine_memory()),
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
  measured.step_flops = flops_of([&] { engine.step(alone.optimizer.lr, /*want_norm=*/false); });
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
  // a training of one step has no next one, at whose begin the step would be measured
  if (measured.step_seconds <= 0 && outcome.steps > 0)
    measured.step_seconds = steps / lanes / static_cast<double>(outcome.steps);
}

RunResult short_run(const RunOptions& run, double seconds, Clock& clock) {
  RunOptions options = run;
  options.job = short_job(run.job, seconds);
  options.quiet = true;
  options.budget_from_first_step = true;
  try {
    return train::run(options, system_disk(), clock);
  } catch (const Error& error) {
    if (error.code != ErrorCode("TRAIN_SAVE_FAILED") && error.code != ErrorCode("DISK_FULL")) throw;
    throw Error("PLAN_NO_SCRATCH", "the short run could not be saved in " + run.run_directory + ": " + error.what(),
                "set TMPDIR to a directory with free space");
  }
}

}  // namespace

advise::Plan plan_job(const RunOptions& run, double seconds, Clock& clock) {
  // First, because the memory of whatever comes before would count as that of the run.
  const RunResult result = short_run(run, seconds, clock);
  if (run.stop_signals != nullptr && run.stop_signals->load() > 0)
    throw Error("PLAN_STOPPED", "the plan was stopped before it had measured the job", "");
  const auto outcome = rundir::parse_outcome(rundir::report_text(system_disk(), run.run_directory));
  advise::MeasuredRun measured{.step_seconds = result.steps.mean(),
                               .step_error = result.steps.error(),
                               .evaluation_seconds = result.evaluations.mean(),
                               .save_seconds = result.save_seconds};
  if (outcome) read_outcome(*outcome, measured);
  if (measured.steps == 0 || measured.step_seconds <= 0)
    throw Error("PLAN_TOO_SHORT", "the job did not finish a step in " + std::to_string(std::llround(seconds)) + " s",
                "give a longer --time");
  const auto dataset = open_data(run.job);
  const data::DataInfo& info = dataset->info();
  const spec::Job resolved = resolve(run.job, info, this_machine()).job;
  const loop::Lengths lengths = loop::lengths_of(resolved, info.train_size, info.tokens_per_sample);
  advise::PlannedJob wanted = planned(resolved, info, lengths);
  count_model(short_job(resolved, seconds), *dataset, wanted, measured);
  return advise::plan(wanted, measured);
}

}  // namespace sinew::train
