// Inside train/: converts the training state to a checkpoint and back.
#pragma once

#include "train/train.h"

namespace sinew::train {

DType dtype_of(const torch::Tensor& tensor);  // throws Error for types that no file can hold
torch::Tensor view_of(const Array& array);    // shares the array's memory

// Returns the state at step 0: parameters and buffers as the model was initialised, averages equal to the parameters,
// and everything else zero. The engine adds the optimizer state.
TrainingState initial_state(const spec::Job& job, model::Model& model, torch::MemoryFormat format);

// Returns the text that the digest covers for everything that is not a tensor.
std::string digest_text(const TrainingState& state);

// Copies the whole state once, for the background writer. The next step waits for the copy, so `lanes` share the work.
checkpoint::OwnedSnapshot snapshot(const TrainingState& state, const StateFacts& facts, Lanes* lanes = nullptr);

// Fills `state`, which initial_state made for the same job, from a checkpoint. Throws Error with a list if names,
// shapes or dtypes differ.
void restore(TrainingState& state, StateFacts& facts, const checkpoint::Loaded& loaded);

// Loads parameters from a checkpoint, a run or a safetensors file into a fresh state, and the buffers that the file
// has. Loads no other part of a state. `from.map` translates names; tensors that match `reinit` keep their values.
// Throws Error with every name that is missing, unexpected or of another shape. Returns text for the log.
std::string warm_start(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                       Disk& disk);
// Does the same with tensors that were read from `file`.
std::string take_weights(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                         const checkpoint::TensorFile& read, const std::string& file);

// Writes the serving artifact: weights (averaged ones under EMA) and buffers in one safetensors file.
checkpoint::FileDigest write_model(const TrainingState& state, const std::string& path,
                                   const checkpoint::Metadata& metadata, Disk& disk);

}  // namespace sinew::train
