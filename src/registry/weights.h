// Inside registry/: checks the weights of a model.
#pragma once

#include <string>

#include "base/disk.h"

namespace sinew::registry {

// The results of two checks: `whole` (the file is valid safetensors) and `finite` (no weight is infinite or NaN). Each
// field is "passed" or says what is wrong. The checks use bounded memory.
struct WeightsCheck {
  std::string whole, finite;
};
WeightsCheck check_weights(Disk& disk, const std::string& path);

}  // namespace sinew::registry
