// Measures what this machine can do, to compare it with others. Private to train/.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace sinew::train {

struct MachineProbe {
  double flops = 0;         // operations a second of large matrix products on all lanes together
  double bandwidth = 0;     // bytes a second that all lanes together read and write while they copy
  double call_seconds = 0;  // of an operator on tiny tensors, on one lane
};

// Takes about a second. `precision`: fp32 or bf16.
MachineProbe probe_machine(int64_t lanes, const std::string& precision, Clock& clock);

}  // namespace sinew::train
