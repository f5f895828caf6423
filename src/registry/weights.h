// Inside registry/: checks the weights of a model.
#pragma once

#include <string>

#include "base/disk.h"

namespace sinew::registry {

// Each field is "passed" or says what is wrong. `whole`: whether the file is valid safetensors. `finite`: whether no
// weight is infinite or NaN. The check uses bounded memory.
struct WeightsCheck {
  std::string whole, finite;
};
WeightsCheck check_weights(Disk& disk, const std::string& path);

}  // namespace sinew::registry
