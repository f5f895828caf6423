// Implements `sinew find-lr`: the worker makes a range test of the learning rate.
#include "base/error.h"
#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_find_lr(const Arguments& arguments) {
  task::FindRate task;
  Options options("find-lr", "Suggests a learning rate for a job, by a range test");
  options
      .about(
          "Trains the job for some steps while its learning rate grows exponentially, and suggests the rate at which "
          "the loss falls fastest. Everything else is as the job says, except that its schedule plays no part. The "
          "same "
          "job always gets the same suggestion. Nothing is saved.")
      .argument("JOB", task.job, "the job file")
      .rest("key=value", task.overrides, "overrides, for example optimizer.name=sgd")
      .flag("--json", task.json, "print one JSON object, with every step")
      .number("--min-lr", "LR", task.lowest, "the learning rate of the first step")
      .number("--max-lr", "LR", task.highest, "the learning rate of the last step")
      .integer("--steps", "N", task.steps, 10, 100'000,
               "number of steps; the test ends early if the loss grows too much")
      .text("--plot", "FILE", task.plot, "also draw the losses: a file that ends in .png or .svg");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox).example("sinew find-lr job.yaml --plot lr.svg");
  if (!options.parse(arguments)) return kDone;
  if (task.lowest >= task.highest)
    options.refuse("--min-lr is not below --max-lr", "leave one of them out, or exchange them");
  if (!task.plot.empty() && !task.plot.ends_with(".png") && !task.plot.ends_with(".svg"))
    throw UsageError("PLOT_WRONG_ENDING", "'" + task.plot + "' ends neither in .png nor in .svg",
                     "choose one of these endings");
  if (!prepare_training(task.job, task.overrides, "sinew find-lr", sandbox, task.plot, task.sandbox)) return kUsage;
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
