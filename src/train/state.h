// Converts the training state to a checkpoint and back. Private to train/.
#pragma once

#include "train/train.h"

namespace sinew::train {

DType dtype_of(const torch::Tensor& tensor);  // throws Error for types that no file can hold
torch::Tensor view_of(const Array& array);    // shares the array's memory

// Returns the state at step 0. Parameters and buffers are as the model was initialised, averages equal the parameters,
// and everything else is zero. The engine adds the optimizer state.
TrainingState initial_state(const spec::Job& job, model::Model& model, torch::MemoryFormat format);

// Returns the text that the digest covers for everything that is not a tensor.
std::string digest_text(const TrainingState& state);

// Copies the whole state once, for the background writer. The next step waits for the copy, so `lanes` share the work.
checkpoint::OwnedSnapshot snapshot(const TrainingState& state, const StateFacts& facts, Lanes* lanes = nullptr);

// Fills `state` from a checkpoint; initial_state must have made `state` for the same job. If names, shapes or dtypes
// differ, throws Error with a list of the differences.
void restore(TrainingState& state, StateFacts& facts, const checkpoint::Loaded& loaded);

// Loads parameters from a checkpoint, a run or a safetensors file into a new state, and buffers if the file has them.
// Loads no other part of a state. `from.map` translates names; tensors that match `reinit` keep their values. Throws
// Error with every name that is missing, unexpected or of another shape. Returns text for the log.
std::string warm_start(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                       Disk& disk);
// Does the same with tensors that were read from `file`.
std::string take_weights(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                         const checkpoint::TensorFile& read, const std::string& file);

// Writes the serving artifact: weights (averaged ones under EMA) and buffers in one safetensors file.
checkpoint::FileDigest write_model(const TrainingState& state, const std::string& path,
                                   const checkpoint::Metadata& metadata, Disk& disk);

}  // namespace sinew::train
