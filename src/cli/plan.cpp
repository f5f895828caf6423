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
          "Trains the job for some seconds with one worker of this machine, and saves nothing. Each figure has a range "
          "that "
          "holds the true value in nine of ten cases.")
      .argument("JOB", task.job, "the job file")
      .rest("key=value", task.overrides, "overrides, for example trainer.batch_size=256")
      .flag("--json", task.json, "print one JSON object")
      .duration("--time", task.seconds, "how long to measure")
      .number("--price", "PRICE", task.price, "what an hour of this machine costs")
      .duration("--within", task.within_seconds, "also says how many steps this time allows")
      .example("sinew plan job.yaml --price 0.34 --within 8h");
  if (!options.parse(arguments)) return kDone;
  auto job = load_training(task.job, task.overrides, "sinew plan");
  if (!job) return kUsage;
  registry::check_out_init_from(*job, task.overrides, "runs", own_variable("SINEW_STORE"));
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
