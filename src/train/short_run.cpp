#include "train/short_run.h"

#include <algorithm>
#include <cmath>

#include "base/disk.h"
#include "base/error.h"
#include "base/machine.h"
#include "train/flop_count.h"
#include "train/lone_engine.h"
#include "train/machine_probe.h"
#include "train/resolve.h"

namespace sinew::train {

spec::Job short_job(spec::Job job, double seconds) {
  job.budget = {.seconds = seconds, .memory = job.budget.memory};
  job.trainer.batch_size_ramp.clear();
  job.objective.reset();
  job.early_stopping.monitor.clear();
  job.checkpoint.mirror.clear();
  job.checkpoint.keep = 1;
  job.checkpoint.keep_best = 0;
  job.logging.tensorboard = false;
  return job;
}

ShortRun short_run(const RunOptions& run, double seconds, Clock& clock) {
  RunOptions options = run;
  options.job = short_job(run.job, seconds);
  options.quiet = true;
  options.budget_from_first_step = true;
  try {
    const RunResult result = train::run(options, system_disk(), clock);
    if (run.stop_signals != nullptr && run.stop_signals->load() > 0)
      throw Error("PLAN_STOPPED", "it was stopped before it had measured the job", "start it again");
    if (result.step == Step(0))
      throw Error("PLAN_TOO_SHORT", "the job did not finish a step in " + std::to_string(std::llround(seconds)) + " s",
                  "give a longer --time");
    const auto outcome = rundir::parse_outcome(rundir::report_text(system_disk(), run.run_directory));
    return {result, outcome.value_or(rundir::Outcome())};
  } catch (const Error& error) {
    if (error.code != ErrorCode("TRAIN_SAVE_FAILED") && error.code != ErrorCode("DISK_FULL")) throw;
    throw Error("PLAN_NO_SCRATCH", "the short run could not be saved in " + run.run_directory + ": " + error.what(),
                "set TMPDIR to a directory with free space");
  }
}

spec::Job job_of(const ShortRun& made, const RunOptions& run, const data::DataInfo& info) {
  spec::Job job = run.job;
  const std::string file = rundir::file_in(run.run_directory, rundir::kResolvedFile);
  const spec::Reading reading = spec::read_job(read_text(system_disk(), file), file);
  if (reading.problems.empty()) {
    // it may have more shards than usual, and fewer lanes, to keep to budget.memory
    const spec::TrainerOptions& decided = reading.job.trainer;
    job.trainer.shards = decided.shards;
    job.trainer.precision = decided.precision;
    job.trainer.memory_format = decided.memory_format;
  }
  const auto& time = made.outcome.time;
  if (time && time->lanes > 0) job.trainer.lanes = time->lanes;
  return resolve(job, info, this_machine()).job;
}

namespace {

// The operators of a step on one lane. The step before it allocates what later ones use again.
std::vector<advise::OperatorUse> operators_of_step(const spec::Job& job, const data::Dataset& dataset) {
  spec::Job alone = job;
  alone.trainer.lanes = 1;
  LoneEngine lone(alone, dataset);
  const auto step = [&] { lone.engine().step(alone.optimizer.lr, /*want_norm=*/false); };
  step();
  return operators_of(step);
}

}  // namespace

std::vector<ConditionTime> experiment_with(const RunOptions& run, double seconds, Clock& clock) {
  RunOptions options = run;
  options.experiment = true;
  return short_run(options, seconds, clock).outcome.experiments;
}

MeasuredJob measure_job(const RunOptions& run, double seconds, bool operators, Clock& clock) {
  const ShortRun made = short_run(run, seconds, clock);
  const rundir::Outcome& outcome = made.outcome;
  MeasuredJob measured;
  measured.record = advise::record_of(outcome, run.run_directory);
  const auto dataset = open_data(run.job);
  measured.job = job_of(made, run, dataset->info());
  const double duration = measured.record.seconds();
  measured.samples_per_second = static_cast<double>(outcome.samples) / duration;
  const auto lanes = static_cast<double>(measured.record.time.lanes);
  const double on_one_lane = lanes * duration / static_cast<double>(std::max<int64_t>(1, outcome.steps));
  const bool stopped = run.stop_signals != nullptr && run.stop_signals->load() > 0;
  if (!operators || stopped || 2 * on_one_lane > seconds) return measured;
  const MachineProbe probe = probe_machine(1, measured.job.trainer.precision, clock);
  measured.record.peak_flops = probe.flops;
  measured.record.bandwidth = probe.bandwidth;
  measured.record.operators = operators_of_step(short_job(measured.job, seconds), *dataset);
  return measured;
}

}  // namespace sinew::train
