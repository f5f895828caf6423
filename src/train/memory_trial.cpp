#include "train/memory_trial.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/resident_memory.h"
#include "train/engine.h"
#include "train/state.h"

namespace sinew::train {
namespace {

// The child writes this to the pipe, then the text of the error.
struct Record {
  bool ended_early = false;
  int64_t bytes = 0, file_bytes = 0;
};

// A step of the job with fewer shards, so that it takes little time, but with as many samples in each.
spec::Job short_step_of(spec::Job job, StepShape shape, const data::DataInfo& info) {
  auto& trainer = job.trainer;
  const int64_t samples = quotient_up(trainer.batch_size, shape.shards);
  const int64_t shards = std::min(shape.shards, 2 * shape.lanes);
  const int64_t evaluated = trainer.eval_batch_size > 0 ? trainer.eval_batch_size : trainer.batch_size;
  const int64_t part =
      data::evaluation_part(std::max(info.val_size, info.test_size), evaluated, shape.shards, kMaxTreeLeaves);
  trainer.eval_batch_size = part * shards;
  trainer.batch_size = std::min(trainer.batch_size, samples * shards);
  trainer.batch_size_ramp.clear();
  trainer.drop_last = false;
  trainer.shards = shards;
  trainer.lanes = shape.lanes;
  job.cluster.audit = 0;
  return job;
}

// What the reducer holds of a step with so many shards (make_local_reducer).
int64_t held_gradients(int64_t gradient, int64_t shards, int64_t lanes) {
  if (gradient * shards <= kHeldGradientBytes) return gradient * shards;
  int64_t levels = 1;
  for (int64_t reached = 4; reached < shards; reached *= 4) ++levels;
  return gradient * std::min(shards, lanes + 3 * levels);
}

// What loaders keep ready for this many samples of a step and the two after it, or for an evaluation.
int64_t loaded_ahead(const spec::Job& job, const data::Dataset& dataset, int64_t batch_size, int64_t evaluated) {
  if (dataset.in_memory()) return 0;
  constexpr int64_t kNumber = 8;  // bytes, at most
  const data::DataInfo& info = dataset.info();
  const int64_t sample = kNumber * (element_count(info.input_shape) + element_count(info.target_shape));
  return std::min(job.data.prefetch_bytes, std::max(3 * batch_size, evaluated) * sample);
}

void evaluate_some(Engine& engine, const data::DataInfo& info, int64_t lanes) {
  if (info.val_size + info.test_size == 0) return;
  std::atomic<int64_t> begun{0};
  try {
    engine.evaluate(info.val_size >= info.test_size ? data::Split::val : data::Split::test,
                    [&] { return begun++ >= 2 * lanes; });
  } catch (const loop::OutOfTime&) {
  }
}

Record measure(const TrialOptions& options) {
  const data::DataInfo& info = options.dataset->info();
  const StepShape shape = options.shape;
  const spec::Job job = short_step_of(options.job, shape, info);
  StageTimer stages(shape.lanes, system_clock().monotonic_seconds(), system_clock());
  data::Prefetcher prefetcher(*options.dataset, job.trainer.seed, *job.data.prefetch_threads, job.data.prefetch_bytes);
  const auto reducer = make_local_reducer();
  Engine engine(EngineOptions{
      .job = job, .dataset = options.dataset, .prefetcher = &prefetcher, .reducer = reducer.get(), .stages = &stages});
  engine.step(0.0, /*want_norm=*/false);
  const checkpoint::OwnedSnapshot copy = train::snapshot(engine.state(), {}, &engine.lanes());
  engine.step(0.0, /*want_norm=*/false);
  evaluate_some(engine, info, shape.lanes);
  int64_t gradient = 0;
  for (const torch::Tensor& one : engine.gradients()) gradient += static_cast<int64_t>(one.nbytes());
  const int64_t more =
      held_gradients(gradient, shape.shards, shape.lanes) - held_gradients(gradient, *job.trainer.shards, shape.lanes);
  const int64_t ahead =
      loaded_ahead(job, *options.dataset, options.job.trainer.batch_size, std::max(info.val_size, info.test_size)) -
      loaded_ahead(job, *options.dataset, job.trainer.batch_size, 0);
  const ResidentMemory memory = resident_memory();
  return {.bytes = memory.peak - memory.files + std::max<int64_t>(0, more) + std::max<int64_t>(0, ahead),
          .file_bytes = memory.files};
}

// Never throws: what fails is a part of the text.
std::string record_text(const TrialOptions& options) {
  Record record;
  std::string error;
  try {
    record = measure(options);
  } catch (const std::exception& failed) {
    record = {};
    record.ended_early = ran_out(failed);
    if (!record.ended_early) error = failed.what();
    if (!record.ended_early && error.empty()) error = "?";
  } catch (...) {
    error = "?";
  }
  return std::string(reinterpret_cast<const char*>(&record), sizeof record) + error;
}

}  // namespace

TrialResult try_memory(const TrialOptions& options) {
  TrialResult result{.trial = {.shape = options.shape}};
  const ChildResult child = in_child({options.most_bytes, options.ends_at, options.stop_signals},
                                     [&](const ChildWrite& write) { write(record_text(options)); });
  result.end = child.end;
  if (result.end != TrialResult::End::measured) return result;
  if (child.text.size() < sizeof(Record)) {
    // Code that does not expect an allocation to fail ends by other signals than SIGKILL.
    result.trial.ended_early = child.killed;
    if (!child.killed) result.trial.error = "?";
    return result;
  }
  Record record;
  std::memcpy(&record, child.text.data(), sizeof record);
  result.trial.ended_early = record.ended_early;
  result.trial.bytes = record.bytes;
  result.trial.error = child.text.substr(sizeof record);
  result.file_bytes = record.file_bytes;
  return result;
}

}  // namespace sinew::train
