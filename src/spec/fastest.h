// Part of spec.h: options whose value a measurement decides, when a run begins.
#pragma once

#include "spec/job.h"

namespace sinew::spec {

inline constexpr const char* kFastest = "fastest";  // the value that leaves an option to the measurement

// Whether the job leaves its precision or its memory format to a measurement.
inline bool wants_fastest(const Job& job) {
  return job.trainer.precision == kFastest || job.trainer.memory_format == kFastest;
}

}  // namespace sinew::spec
