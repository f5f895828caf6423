// Inside registry/: is a model's file what it should be?
#pragma once

#include <string>

#include "base/disk.h"

namespace sinew::registry {

// "passed", or what is wrong: it is no safetensors file, or a weight of it is not a number. Bounded memory.
struct WeightsVerdict {
  std::string whole, finite;
};
WeightsVerdict judge_weights(Disk& disk, const std::string& path);

}  // namespace sinew::registry
