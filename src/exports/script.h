// Private to exports/: a trained model as a TorchScript module.
#pragma once

#include <torch/script.h>

#include <string>
#include <unordered_map>

#include "exports/graph.h"

namespace sinew::exports {

using Texts = std::unordered_map<std::string, std::string>;  // that a file carries, by name

// Makes the module in evaluation mode, with the weights. Its methods are prepare, outputs, finish and forward, which
// calls the three.
torch::jit::Module script_of(const train::LoadedModel& loaded, const Weights& weights);

// Returns the bytes of the module's file.
std::string script_file(const torch::jit::Module& module, const Texts& about);

}  // namespace sinew::exports
