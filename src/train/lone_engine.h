// An engine that trains in memory, without a run: with a prefetcher and a reducer of its own. Private to train/.
#pragma once

#include <functional>
#include <memory>

#include "train/engine.h"

namespace sinew::train {

class LoneEngine {
 public:
  // Every auto of the job is resolved. `data` must outlive this object. `make_model` builds the model instead of
  // job.model, if set.
  LoneEngine(const spec::Job& job, const data::Dataset& data,
             std::function<std::unique_ptr<model::Model>()> make_model = nullptr)
      : prefetcher_(data, job.trainer.seed, *job.data.prefetch_threads, job.data.prefetch_bytes),
        reducer_(make_local_reducer()),
        engine_(EngineOptions{job, &data, &prefetcher_, reducer_.get(), std::move(make_model)}) {}
  Engine& engine() { return engine_; }

 private:
  data::Prefetcher prefetcher_;
  std::unique_ptr<Reducer> reducer_;
  Engine engine_;
};

}  // namespace sinew::train
