// Inside train/: decides every `auto` of a job for its data and machine, once, before step 0.
#pragma once

#include "train/train.h"

namespace sinew::train {

// The properties of a machine that may decide an auto.
struct Machine {
  int64_t cores = 1;  // cores that this process may use (affinity and cgroup)
  bool cuda = false;
  bool fast_bfloat16 = false;  // the CPU has bfloat16 multiplication in hardware
};
Machine this_machine();

struct Resolved {
  spec::Job job;      // trainer.lanes and data.prefetch.threads are concrete here …
  spec::Job written;  // … and remain auto here, because they depend on the machine and never change the result
  spec::Reasons reasons;
};
Resolved resolve(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

// The content of environment.json: what the run is computed with.
std::string environment_json(const Machine& machine);
// The part of it that decides bits, as one line of JSON: two members compute the same bits only if theirs are equal. The
// number of cores does not belong to it, because it never changes a result.
std::string numerics_json();

}  // namespace sinew::train
