// Implements `sinew plan`, which trains a job for some seconds and says what the whole training will take.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "base/proc.h"
#include "base/short_number.h"
#include "base/terminal.h"
#include "base/terminal_text.h"
#include "sandbox/sandbox.h"
#include "train/train.h"
#include "worker/scratch.h"
#include "worker/tasks.h"

namespace sinew::worker {

int run_plan(const task::Plan& task) {
  const Scratch scratch;
  const rundir::RunLock lock = train::lock_run(scratch.path());
  if (task.sandbox) sandbox::confine({.run_directory = scratch.path(), .memory_bytes = task.sandbox->memory_bytes});
  train::RunOptions options;
  options.job = read_job_file(task.job, task.overrides);
  options.run_directory = scratch.path();
  options.lock = &lock;
  options.stop_signals = &stop_signals;
  options.began_seconds_ago = std::min(process_age_seconds(), kMostStart);
  if (!task.json && terminal_of(STDERR_FILENO).present)
    print_text(stderr, "trains for " + short_seconds(task.seconds) + " to measure the job ...\n");
  const advise::Plan plan = train::plan_job(options, task.seconds, !task.machines.empty(), system_clock());
  advise::PlanQuestions questions{.price = task.price,
                                  .within_seconds = task.within_seconds,
                                  .spend = task.spend,
                                  .retrain_seconds = task.retrain_seconds,
                                  .samples_per_day = task.samples_per_day};
  if (!task.machines.empty()) questions.machines = advise::read_machines(task.machines, "the table of machines");
  if (task.json) {
    std::fputs(advise::plan_json(plan, questions).c_str(), stdout);
  } else {
    print_text(stdout, printable(advise::plan_text(plan, questions), true));
  }
  flush_stdout();
  return kDone;
}

}  // namespace sinew::worker
