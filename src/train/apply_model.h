// Loads a trained model into an engine over some data, to evaluate the model or predict with it. Private to train/.
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

// Builds the job's model and loads the weights, whose tensors must match those of the model by name. Does not load what
// only training needs, such as optimizer state.
AppliedModel apply_model(const Trained& trained, const spec::Job& job, std::unique_ptr<data::Dataset> dataset,
                         Disk& disk);

// Opens samples from another source, prepared like the data that the model was trained on.
std::unique_ptr<data::Dataset> open_samples(const Trained& trained, const spec::Job& job,
                                            const spec::DataSource& source, bool labelled, Disk& disk);

// The score from which a sample counts as one of the second class (threshold.h): that of the model, or of a job that
// gives one; nullopt: the most likely class counts.
std::optional<double> threshold_of(const Trained& trained, const spec::Job& job);

// Returns the description of the training data in model.json. If there is none, opens the job's data to make it.
data::DataInfo training_data(const Trained& trained, const spec::Job& job);

}  // namespace sinew::train
