// Inside train/: decides every `auto` of a job for its data and machine, once, before step 0.
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
  // equals `job`, except that trainer.lanes and data.prefetch.threads stay auto: they depend on the machine
  spec::Job written;
  spec::Reasons reasons;
};
Resolved resolve(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

// Returns the content of environment.json. Two runs can be bit-equal only if its versions and its CPU are equal.
std::string environment_json(const Machine& machine);
// The part of it that decides bits, as one line of JSON: two members compute the same bits only if theirs are equal.
// Covers the CPU, the version of libtorch and the builds of the program and of the libraries that compute and decode.
// The number of cores does not belong to it, because it never changes a result.
std::string numerics_json();

}  // namespace sinew::train
