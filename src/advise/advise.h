// Says what limits a run and what would make it faster, from what the run has recorded about itself in report.json.
//
// All functions are pure: the same record gives the same verdict. Each part of a verdict has its evidence in figures.
#pragma once

#include <string>
#include <vector>

#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "rundir/rundir.h"

namespace sinew::advise {

// What the time of the lanes went to, between the start and the end of the run.
enum class Limit {
  input,          // waiting for samples
  compute,        // forward and backward passes, the optimizer
  communication,  // exchanging sums with other workers, and waiting for them
  imbalance,      // lanes that have done their part of a step wait for the others
  overhead,       // what is done between the steps, while no lane computes
  checkpoints,    // copying the state
  starved,        // threads of the worker could have run, but had no core, or the CPU quota was used up
};
std::string_view name_of(Limit limit);  // "input-bound"

struct Part {
  Limit limit = Limit::compute;
  double share = 0;      // of the lanes' time between start and end, 0 to 1; the shares of all parts add up to 1
  std::string evidence;  // "the lanes waited for samples 3.1 s of 29.2 s"
};

struct Remedy {
  std::string what;
  // The training would be at most so much faster, as a fraction: 0.25 is 25 %. It is a bound: what the remedy is for
  // would take no time at all.
  double at_most = 0;
  bool keeps_result = true;  // true: the model stays the same to the last bit
};

struct Verdict {
  std::vector<Part> parts;  // the largest first
  // The limits that a reader must know: the largest part, and each other one that takes a quarter of the time or more.
  std::vector<Limit> limits;
  std::vector<Remedy> remedies;
};

// Returns the verdict on a run that took these times. There are lanes, and time passed between start and end; all
// numbers are finite and none is negative.
Verdict judge(const StageTimes& time, const ResourceUse& resources);

// Throws Error (ADVISE_NO_RECORD) if the report does not say where the time went; the folds of a cross-validation do.
// `run` is the name for messages.
Verdict judge(const rundir::Outcome& outcome, const std::string& run);

// For people and for programs; both end with a newline.
std::string verdict_text(const Verdict& verdict, const StageTimes& time);
std::string verdict_json(const Verdict& verdict);

}  // namespace sinew::advise
