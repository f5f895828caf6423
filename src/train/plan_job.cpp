// Measures a job in a short run, for a plan of the whole training.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/machine.h"
#include "rundir/rundir.h"
#include "train/engine.h"
#include "train/flop_count.h"
#include "train/resolve.h"
#include "train/train.h"

namespace sinew::train {
namespace {

// A directory that vanishes with this object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-plan-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error("PLAN_NO_SCRATCH", "cannot make a directory like " + pattern,
                  "set TMPDIR to a directory with free space");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The job with nothing that would end a short run early or write elsewhere. Its schedules stay those of the whole
// training.
spec::Job short_job(spec::Job job, double seconds) {
  job.budget.seconds = seconds;
  job.budget.training = "never";
  job.objective.reset();
  job.early_stopping.monitor.clear();
  job.checkpoint.mirror.clear();
  job.logging.tensorboard = false;
  return job;
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
                             .budget_seconds = job.budget.seconds};
  if (job.trainer.max_duration.unit == spec::Duration::Unit::seconds)
    planned.max_seconds = job.trainer.max_duration.amount;
  if (const auto every = loop::steps_of(job.trainer.eval_interval, lengths))
    planned.evaluate_every = static_cast<double>(*every);
  return planned;
}

// Counts the parameters, and the operations of the first step, on one lane.
void count_model(const spec::Job& job, const data::Dataset& dataset, advise::PlannedJob& planned,
                 advise::MeasuredRun& measured) {
  spec::Job alone = job;
  alone.trainer.lanes = 1;
  data::Prefetcher prefetcher(dataset, alone.trainer.seed, 1, alone.data.prefetch_bytes);
  const auto reducer = make_local_reducer();
  EngineOptions options;
  options.job = alone;
  options.dataset = &dataset;
  options.prefetcher = &prefetcher;
  options.reducer = reducer.get();
  Engine engine(options);
  measured.step_flops = flops_of([&] { engine.step(alone.optimizer.lr, /*want_norm=*/false); });
  for (const auto& [name, tensor] : engine.replica(0).parameters()) {
    planned.parameters += tensor.numel();
    planned.trained_parameters += tensor.requires_grad() ? tensor.numel() : 0;
  }
}

// What report.json of the short run says.
void read_outcome(const rundir::Outcome& outcome, advise::MeasuredRun& measured) {
  measured.finished = outcome.status == "done";
  measured.seconds = outcome.seconds;
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
  measured.startup_seconds = time[Stage::startup] / lanes;
  measured.end_seconds = time[Stage::finish] / lanes;
  const double steps = time[Stage::data_wait] + time[Stage::forward] + time[Stage::backward] + time[Stage::reduction] +
                       time[Stage::imbalance] + time[Stage::optimizer] + time[Stage::loop];
  if (steps > 0) measured.forward_share = (time[Stage::data_wait] + time[Stage::forward]) / steps;
}

}  // namespace

advise::Plan plan_job(const spec::Job& job, double seconds, std::atomic<int>* stop_signals, Clock& clock) {
  const Scratch scratch;
  RunOptions options;
  options.job = short_job(job, seconds);
  options.run_directory = scratch.path();
  options.quiet = true;
  options.stop_signals = stop_signals;
  // First, because the memory of whatever comes before would count as that of the run.
  const RunResult result = run(options, system_disk(), clock);
  if (stop_signals != nullptr && stop_signals->load() > 0)
    throw Error("PLAN_STOPPED", "the plan was stopped before it had measured the job", "run sinew plan again");
  const auto outcome = rundir::parse_outcome(rundir::report_text(system_disk(), scratch.path()));
  if (!outcome || !result.steps.is_measured())
    throw Error("PLAN_TOO_SHORT",
                "in " + std::to_string(std::llround(seconds)) + " s the job makes no step that could be measured",
                "give a longer --time, or see with sinew check what takes the time");
  advise::MeasuredRun measured{.steps = outcome->steps,
                               .step_seconds = result.steps.mean(),
                               .step_error = result.steps.error(),
                               .evaluation_seconds = result.evaluations.mean(),
                               .save_seconds = result.save_seconds};
  read_outcome(*outcome, measured);
  const auto dataset = open_data(job);
  const data::DataInfo& info = dataset->info();
  const spec::Job resolved = resolve(job, info, this_machine()).job;
  const loop::Lengths lengths = loop::lengths_of(resolved, info.train_size, info.tokens_per_sample);
  advise::PlannedJob wanted = planned(resolved, info, lengths);
  count_model(resolved, *dataset, wanted, measured);
  return advise::plan(wanted, measured);
}

}  // namespace sinew::train
