// Inside train/: converts the training state to a checkpoint and back.
#pragma once

#include "train/train.h"

namespace sinew::train {

DType dtype_of(const torch::Tensor& tensor);  // throws Error for types that no file can hold
torch::Tensor view_of(const Array& array);    // shares the array's memory

// A state at step 0: parameters and buffers as the model was initialised, everything else zero.
TrainingState initial_state(const spec::Job& job, model::Model& model, torch::MemoryFormat format);

// Copies the whole state once, for the background writer. The step waits for it, so idle lanes share the work.
checkpoint::OwnedSnapshot snapshot(const TrainingState& state, const StateFacts& facts, Lanes* lanes = nullptr);

// Fills `state`, which initial_state made for the same job, from a checkpoint. Throws Error with a list if names,
// shapes or dtypes differ.
void restore(TrainingState& state, StateFacts& facts, const checkpoint::Loaded& loaded);

// Loads the parameters, and the buffers that both have, from a checkpoint, a run or a safetensors file into a fresh
// state. A warm start takes the weights and nothing else. `from.map` translates names; parameters that match `reinit`
// keep their values. Throws Error with every name that is missing, unexpected or of another shape. Returns sentences
// for the log.
std::string warm_start(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                       Disk& disk);

// Writes the serving artifact: weights (averaged ones under EMA) and buffers in one safetensors file.
void write_model(const TrainingState& state, const std::string& path, const checkpoint::Metadata& metadata, Disk& disk);

}  // namespace sinew::train
