// Part of supervise.h: lets a worker do a single task, and waits for its end.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "spec/spec.h"
#include "supervise/worker_start.h"
#include "task/task.h"

namespace sinew::supervise {

// Runs the task in a process of its own, which ends when this process does. Its output is appended to the file
// `output`. `label` appears in the list of processes. Throws Error if the worker cannot be started.
ProcessEnd run_task(const Programs& programs, const task::Task& task, const std::string& label,
                    const std::string& output);

struct TaskOutput {
  ProcessEnd end;
  std::string text;  // what the worker printed
};
TaskOutput output_of_task(const Programs& programs, const task::Task& task, const std::string& label);

// Computes the first step of a job file. Returns its loss as a sentence, or what the worker printed about the failure.
// Returns an empty sentence if there is no worker program: an installation without one cannot train.
std::expected<std::string, std::string> try_first_step(const Programs& programs, const std::string& job);
// Gives a run the end of `job`, its own job with `overrides` (rundir::change_end). Before it writes, lets a worker
// compute the first step: throws Error with what the worker printed, and changes nothing, if the data cannot be opened
// or an option does not fit them. A job with code of its own (a model file or a library) is not tried, because the
// worker is not confined.
void give_new_end(const Programs& programs, const spec::Job& job, const std::string& run_directory,
                  const std::vector<std::string>& overrides, Clock& clock);

}  // namespace sinew::supervise
