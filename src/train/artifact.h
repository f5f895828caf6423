// Inside train/: what a run leaves behind when it ends: the model for serving, and how it went.
#pragma once

#include "train/engine.h"
#include "train/train.h"

namespace sinew::train {

// What became of the wish for the best weights.
struct Restored {
  std::string said;   // a sentence; empty: there was nothing to do
  bool loud = false;  // the weights are not those of the best step
};

// Puts the weights of the best checkpoint into the engine, where early stopping wants them and they are not there
// already. Where the best step itself is not on disk, those of the best one that is. Throws Error when that checkpoint
// is damaged.
Restored restore_best(Engine& engine, const spec::Job& job, const std::string& run_directory, Disk& disk);

// <run>/model/: model.safetensors (averaged weights where there are any) and model.json, which is all that serving
// needs; of a program model.pt2 too, with the trained weights in it. Returns why there is none of these last, as a
// sentence; "" where there is one, or none is wanted.
std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk);

// The part of report.json that is a function of the state.
report::Outcome outcome_of(const TrainingState& state, const spec::Job& job, const data::DataInfo& info);

}  // namespace sinew::train
