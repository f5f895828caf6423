// Private to exports/: a trained model as a .pt2 file of torch.export.
#pragma once

#include "exports/script.h"

namespace sinew::exports {

// Returns the bytes of the file. `module` is what script_of made, and `example` an input of at least 2 samples. The
// program has the operators of the module's forward, and takes any number of samples.
std::string program_file(const torch::jit::Module& module, const torch::Tensor& example, const Texts& about);

}  // namespace sinew::exports
