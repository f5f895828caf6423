// Trains a job for some seconds to measure it. Private to train/.
#pragma once

#include "rundir/rundir.h"
#include "train/train.h"

namespace sinew::train {

// The job with nothing that would end a short run early or write elsewhere. Its schedules stay those of the whole
// training. Each step has the final batch size.
spec::Job short_job(spec::Job job, double seconds);

struct ShortRun {
  RunResult result;
  rundir::Outcome outcome;  // its report
};
// `run` has the job, an empty directory that the caller removes, and its lock. Throws Error as run() does, if a signal
// stops it, and if it ends before its first step.
ShortRun short_run(const RunOptions& run, double seconds, Clock& clock);

// The whole job with every auto decided as the short run has decided it.
spec::Job job_of(const ShortRun& made, const RunOptions& run, const data::DataInfo& info);

}  // namespace sinew::train
