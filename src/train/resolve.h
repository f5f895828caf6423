// Decides every `auto` of a job for its data and its machine. This happens once, before step 0. Private to train/.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "spec/spec.h"
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

// The memory format that `auto` means for this job and its precision.
std::string usual_memory_format(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

struct FastestOptions {
  double budget_seconds = 0;  // of the run; a tenth of them may go by before its first step; 0: no limit
  const std::atomic<int>* stop_signals = nullptr;
  std::function<void(const std::string&)> say = nullptr;  // gets a line for the user
};
// If the job wants it, lets another process make a few steps in each precision and memory format that comes into
// question, and takes the fastest one (train/fastest.h). That takes some seconds, and at most a tenth of the training;
// if that is too little to measure anything, `resolved` stays as it is, and says so. Call it before this process has
// threads. Returns false if a stop was asked for meanwhile: nothing is decided then.
bool choose_fastest(Resolved& resolved, const spec::Job& job, const data::Dataset& dataset, const Machine& machine,
                    const FastestOptions& options = {});

struct FitOptions {
  int64_t sharers = 1;            // workers of the run on this machine; they share its memory
  bool may_change_shards = true;  // false: other workers have to decide the same
  double budget_seconds = 0;      // of the run; a part of them may go by before its first step; 0: no limit
  const std::atomic<int>* stop_signals = nullptr;
  std::function<void(const std::string&)> say = nullptr;  // gets a line for the user if anything takes time
};
// If the job has a budget.memory, changes trainer.shards and trainer.lanes of `resolved`, as far as they are auto in
// `job`, so that the training keeps to it, and to the limit of its control group (train/fit_memory.h). Where much more
// is allowed than any such training needs, this returns at once; else trials in other processes measure what it needs,
// for at most two minutes and at most a tenth of budget_seconds. Call it before this process has threads. Returns false
// if a stop was asked for meanwhile: nothing is decided then. Throws Error: MEMORY_TOO_SMALL if nothing fits,
// MEMORY_NOT_MEASURED if the time is over before the shards are known.
bool fit_to_memory(Resolved& resolved, const spec::Job& job, const data::Dataset& dataset,
                   const FitOptions& options = {});

// Returns the content of environment.json. Two runs can be bit-equal only if its versions and its CPU are equal.
std::string environment_json(const Machine& machine);
// Returns the part of environment.json that decides bits, as one line of JSON. Two members compute the same bits only
// if their lines are equal. The line covers the CPU, the version of libtorch, and the builds of the program and of the
// libraries that compute and decode. It does not cover the number of cores, which never changes a result.
std::string numerics_json();

}  // namespace sinew::train
