#include "train/engine_trainer.h"

#include <utility>

#include "train/artifact.h"

namespace sinew::train {
namespace {

constexpr int64_t kMostLoaders = 32;  // threads; a shared file system serves few clients that have more

}  // namespace

EngineTrainer::EngineTrainer(const Resolved& resolved, const data::Dataset& data, const RunOptions& options, Disk& disk,
                             StageTimer* stages)
    : job_(resolved.job),
      data_(data),
      run_directory_(options.run_directory),
      resolved_yaml_(spec::to_yaml(resolved.written, resolved.reasons)),
      disk_(disk),
      prefetcher_(data, job_.trainer.seed, *job_.data.prefetch_threads, job_.data.prefetch_bytes,
                  {.most_threads = resolved.written.data.prefetch_threads ? 0 : kMostLoaders}),
      own_reducer_(make_local_reducer()),
      engine_(EngineOptions{.job = job_,
                            .dataset = &data,
                            .prefetcher = &prefetcher_,
                            .reducer = own_reducer_.get(),
                            .on_work = options.on_work,
                            .stages = stages,
                            .faults = options.faults,
                            .counts_layers = true}) {
  engine_.check_sizes();
}

loop::Plan EngineTrainer::plan() {
  model::Model& model = engine_.replica(0);
  return {.job = job_,
          .resolved_yaml = resolved_yaml_,
          .data = data_.info(),
          .model = engine_.code_identity(),
          .parameters = model::parameter_count(model),
          .shards = engine_.shards(),
          .lanes = engine_.lanes().count(),
          .compared_parts = engine_.compared_parts(),
          .remarks = model.remarks()};
}

Digest EngineTrainer::digest() {
  return train::digest(engine_.state(), &engine_.lanes());
}

checkpoint::OwnedSnapshot EngineTrainer::snapshot(const StateFacts& facts) {
  return train::snapshot(engine_.state(), facts, &engine_.lanes());
}

StateFacts EngineTrainer::restore(const checkpoint::Loaded& loaded) {
  StateFacts saved;
  train::restore(engine_.state(), saved, loaded);
  engine_.state_replaced();
  return saved;
}

std::string EngineTrainer::warm_start() {
  const std::string said = train::warm_start(engine_.state(), job_.model.init_from, job_.model.reinit, disk_);
  engine_.state_replaced();
  return said;
}

std::string EngineTrainer::choose_threshold(bool may_evaluate) {
  const spec::ThresholdOptions& wanted = job_.threshold;
  const bool measures = may_evaluate && data_.info().val_size > 0;
  if (!wanted.given() || (!wanted.metric.empty() && !measures)) return "";
  const std::vector<float> scores = measures ? engine_.scores(data::Split::val) : std::vector<float>();
  threshold_ =
      wanted.value > 0 ? given_threshold(wanted.value, scores) : train::choose_threshold(scores, wanted.metric);
  engine_.use_threshold(threshold_->score);
  return to_string(*threshold_, data_.info());
}

std::string EngineTrainer::write_artifact(Disk& disk) {
  return train::write_artifact(engine_.state(), job_, resolved_yaml_, data_.info(), threshold_, run_directory_, disk);
}

}  // namespace sinew::train
