// Implements `sinew plan`: the worker trains a job for some seconds, and says what the whole training will take.
#include "base/process.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "registry/registry.h"

namespace sinew::cli {

int run_plan(const Arguments& arguments) {
  task::Plan task;
  Options options("plan", "What a training will take: time, memory, cost");
  options
      .about(
          "Trains the job for some seconds with one worker on this machine, and saves nothing. Time, memory and cost "
          "have a range; in about 9 of 10 cases the true value lies in it.")
      .argument("JOB", task.job, "the job file")
      .rest("key=value", task.overrides, "overrides, for example trainer.batch_size=256")
      .flag("--json", task.json, "print one JSON object")
      .duration("--time", task.seconds, "how long to measure")
      .number("--price", "PRICE", task.price, "what an hour of this machine costs")
      .duration("--within", task.within_seconds, "also show how many steps fit into this time");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox).example("sinew plan job.yaml --price 0.34 --within 8h");
  if (!options.parse(arguments)) return kDone;
  auto job = load_training(task.job, task.overrides, "sinew plan");
  if (!job) return kUsage;
  registry::check_out_init_from(*job, task.overrides, "runs", own_variable("SINEW_STORE"));
  task.sandbox = supervise::sandbox_of(sandbox, {supervise::sources_of(*job, task.job, ""), "a scratch directory"},
                                       print_sentence);
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
