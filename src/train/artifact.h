// Inside train/: the model for serving, which a run writes when it ends.
#pragma once

#include "train/train.h"

namespace sinew::train {

// Writes <run>/model/: model.safetensors (averaged weights if there are any) and model.json, which is all that serving
// needs. If the job uses a model file, also writes a copy of that file with the trained weights. Returns a sentence
// that says why this copy is missing, or "" if it was written or is not wanted.
std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk);

}  // namespace sinew::train
