// Inside train/: the training state as a checkpoint and back.
#pragma once

#include "train/train.h"

namespace sinew::train {

// What else a checkpoint's state.json says, beside the state itself.
struct StateFacts {
  Digest data_digest;                 // of the training data; another one at resume is refused
  std::string resolved_job;           // resolved.yaml
  std::string model;                  // model::Model::identity(); another one at resume is refused
  report::Metrics window;             // sums of the training metrics since the last line of metrics.jsonl
  report::Metrics evaluation_window;  // … and since the last evaluation: what a monitored train/loss is the mean of
  double seconds = 0;                 // the run has trained so long, over all its attempts
};

DType dtype_of(const torch::Tensor& tensor);  // throws Error for types no file can hold
torch::Tensor view_of(const Array& array);    // the same memory

// A zero state of the right shapes: parameters and buffers as the model was initialised.
TrainingState initial_state(const spec::Job& job, model::Model& model, torch::MemoryFormat format);

// One copy of everything, ready for the background writer. The step waits for it: lanes that are idle share the work.
checkpoint::OwnedSnapshot snapshot(const TrainingState& state, const StateFacts& facts, Lanes* lanes = nullptr);

// Fills `state`, made by initial_state for the same job, from a checkpoint. Throws Error when names, shapes or dtypes
// differ, listing them.
void restore(TrainingState& state, StateFacts& facts, const checkpoint::Loaded& loaded);

// Parameters (and buffers where both have them) of a checkpoint, run or safetensors file into a fresh state: a warm
// start takes the weights and nothing else. Names as `from.map` says; those that `reinit` fits stay as they are. Throws
// Error with every name that is missing, not wanted or of another shape. Returns sentences for the log.
std::string warm_start(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                       Disk& disk);

// The serving artifact: weights (averaged ones under EMA) and buffers in one safetensors file.
void write_model(const TrainingState& state, const std::string& path, const checkpoint::Metadata& metadata, Disk& disk);

}  // namespace sinew::train
