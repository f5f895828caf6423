// Inside train/: loads a trained model into an engine over some data, to evaluate it or predict with it.
#pragma once

#include "train/engine.h"

namespace sinew::train {

struct AppliedModel {
  spec::Job job;  // every auto is resolved
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<data::Prefetcher> prefetcher;
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Engine> engine;
};

// Builds the job's model and loads the weights, whose tensors must match the model's by name. Does not load optimizer
// state and other parts that only training needs.
AppliedModel apply_model(const Trained& trained, const spec::Job& job, std::unique_ptr<data::Dataset> dataset,
                         Disk& disk);

// Opens samples from another source, prepared like the data that the model was trained on.
std::unique_ptr<data::Dataset> open_samples(const Trained& trained, const spec::Job& job,
                                            const spec::DataSource& source, bool labelled, Disk& disk);

// Returns how model.json describes the training data, or, if it does not, opens the data of the job to find out.
data::DataInfo training_data(const Trained& trained, const spec::Job& job);

}  // namespace sinew::train
