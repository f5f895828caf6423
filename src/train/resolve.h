// Decides every `auto` of a job for its data and its machine. This happens once, before step 0. Private to train/.
#pragma once

#include "train/train.h"

namespace sinew::train {

// The properties of a machine that may decide an auto.
struct Machine {
  int64_t cores = 1;           // cores that this process may use (affinity and cgroup)
  bool fast_bfloat16 = false;  // the CPU has bfloat16 multiplication in hardware
};
Machine this_machine();

struct Resolved {
  spec::Job job;  // every auto is decided
  // Equals `job`, except that trainer.lanes and data.prefetch.threads stay auto, because they depend on the machine.
  spec::Job written;
  spec::Reasons reasons;
};
Resolved resolve(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

// Returns the content of environment.json. Two runs can be bit-equal only if its versions and its CPU are equal.
std::string environment_json(const Machine& machine);
// Returns the part of environment.json that decides bits, as one line of JSON. Two members compute the same bits only
// if their lines are equal. The line covers the CPU, the version of libtorch, and the builds of the program and of the
// libraries that compute and decode. It does not cover the number of cores, which never changes a result.
std::string numerics_json();

}  // namespace sinew::train
