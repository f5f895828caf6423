// Inside train/: what every `auto` of a job means for this data and machine, decided once, before step 0.
#pragma once

#include "train/train.h"

namespace sinew::train {

// What of the machine may decide an auto.
struct Machine {
  int64_t cores = 1;  // this process may use (affinity and cgroup)
  bool cuda = false;
  bool fast_bfloat16 = false;  // the CPU multiplies bfloat16 in hardware
};
Machine this_machine();

struct Resolved {
  spec::Job job;      // trainer.lanes and data.prefetch.threads are concrete here …
  spec::Job written;  // … and still auto here: they are the machine's matter, never the result's
  spec::Reasons reasons;
};
Resolved resolve(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

// environment.json: versions and CPU, what two runs must share to be bit-equal.
std::string environment_json(const Machine& machine);

}  // namespace sinew::train
