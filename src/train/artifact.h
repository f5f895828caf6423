// Writes the model for serving when a run ends. Private to train/.
#pragma once

#include <optional>
#include <string>

#include "train/threshold.h"
#include "train/train.h"

namespace sinew::train {

// Writes <run>/model/: model.safetensors (averaged weights if there are any) and model.json, which is all that serving
// needs. If the job uses a model file, also writes a copy of that file with the trained weights. Writes the list of the
// digests of these files last. If the writing is interrupted, the model is therefore refused until it is written again.
// Returns a sentence that says why the copy is missing, or "" if it was written or is not needed.
std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::optional<Threshold>& threshold,
                           const std::string& run_directory, Disk& disk);

}  // namespace sinew::train
