// Inside train/: the files that a run writes when it ends: the model for serving, and the outcome.
#pragma once

#include "rundir/rundir.h"
#include "train/engine.h"
#include "train/train.h"

namespace sinew::train {

// The result of restore_best.
struct Restored {
  std::string message;      // a sentence; empty: there was nothing to restore
  bool is_warning = false;  // the weights are not those of the best step
};

// Loads the weights of the best checkpoint into the engine if early stopping asks for it and the engine is at another
// step. If the best step itself is not on disk, it loads the best one that is. Throws Error if that checkpoint is
// damaged.
Restored restore_best(Engine& engine, const spec::Job& job, const std::string& run_directory, Disk& disk);

// Writes <run>/model/: model.safetensors (averaged weights if there are any) and model.json, which is all that serving
// needs, and for a model file of the user also that file with the trained weights. Returns the reason why that last
// file is missing, as a sentence; "" if it was written or none is wanted.
std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk);

// The fields of report.json that are a function of the state.
rundir::Outcome outcome_of(const TrainingState& state, const spec::Job& job, const data::DataInfo& info);

}  // namespace sinew::train
