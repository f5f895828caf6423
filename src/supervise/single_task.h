// Part of supervise.h: lets a worker do a single task, and waits for its end.
#pragma once

#include <expected>
#include <string>

#include "base/process.h"
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

}  // namespace sinew::supervise
