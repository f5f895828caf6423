// Implements `sinew plan`, which trains a job for some seconds and says what the whole training will take.
#include <cstdio>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "base/terminal_text.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {

int run_plan(const task::Plan& task) {
  const spec::Job job = read_job_file(task.job, task.overrides);
  const advise::Plan plan = train::plan_job(job, task.seconds, &stop_signals, system_clock());
  const advise::PlanQuestions questions{task.price, task.within_seconds};
  if (task.json) {
    std::fputs(advise::plan_json(plan, questions).c_str(), stdout);
  } else {
    print_text(stdout, printable(advise::plan_text(plan, questions), true));
  }
  flush_stdout();
  return kDone;
}

}  // namespace sinew::worker
