// Inside train/: a trained model ready to be asked: its weights in an engine over some data.
#pragma once

#include "train/engine.h"

namespace sinew::train {

struct AppliedModel {
  spec::Job job;  // every auto concrete
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<data::Prefetcher> prefetcher;
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Engine> engine;
};

// Weights must fit the job's model name by name. What only training needs (optimizer state) is left out.
AppliedModel apply_model(const Trained& trained, const spec::Job& job, std::unique_ptr<data::Dataset> dataset,
                         Disk& disk);

// Samples of a source of its own, made ready as those the model was trained on.
std::unique_ptr<data::Dataset> open_samples(const Trained& trained, const spec::Job& job,
                                            const spec::DataSource& source, bool labelled, Disk& disk);

// The data the model remembers, or that of the job.
data::DataInfo training_data(const Trained& trained, const spec::Job& job);

}  // namespace sinew::train
