// Implements `sinew check`: the worker tries a job for some seconds and judges whether it can learn.
#include "base/process.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "registry/registry.h"

namespace sinew::cli {

int run_check(const Arguments& arguments) {
  task::Check task;
  Options options("check", "Tries a job for some seconds and judges whether it can learn");
  options
      .about(
          "Checks the data and its splits, the untrained model, its gradients, overfitting one batch, the first steps, "
          "the job in short, and that the same steps give the same bits. Each check passes, or names the likely cause "
          "and what to try. Nothing is saved.")
      .argument("JOB", task.job, "the job file")
      .rest("key=value", task.overrides, "overrides, for example optimizer.lr=3e-4")
      .flag("--json", task.json, "print one JSON object")
      .duration("--time", task.seconds,
                "how long all checks together may take; checks that find no time left are skipped")
      .notes("Exit code 0: no check failed; 4: at least one did.")
      .example("sinew check job.yaml");
  if (!options.parse(arguments)) return kDone;
  auto job = load_training(task.job, task.overrides, "sinew check");
  if (!job) return kUsage;
  registry::check_out_init_from(*job, task.overrides, "runs", own_variable("SINEW_STORE"));
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
