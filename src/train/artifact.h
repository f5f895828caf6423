// Inside train/: the model for serving, which a run writes when it ends.
#pragma once

#include "train/train.h"

namespace sinew::train {

// Writes <run>/model/: model.safetensors (averaged weights if there are any) and model.json, which is all that serving
// needs, and for a model file of the user also that file with the trained weights. Returns the reason why that last
// file is missing, as a sentence; "" if it was written or none is wanted.
std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk);

}  // namespace sinew::train
