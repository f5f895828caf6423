// Implements `sinew plan`: the worker trains a job for some seconds, and says what the whole training will take.
#include <cstdio>

#include "advise/advise.h"
#include "base/disk.h"
#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_plan(const Arguments& arguments) {
  task::Plan task;
  std::string machines, retrain;
  bool print_machines = false;
  Options options("plan", "What a training will take: time, memory, cost");
  options
      .about(
          "Trains the job for some seconds with one worker on this machine, and saves nothing. Time, memory and cost "
          "have a range; in about 9 of 10 cases the true value lies in it.")
      .optional_argument("JOB", task.job, "the job file")
      .rest("key=value", task.overrides, "overrides, for example trainer.batch_size=256")
      .flag("--json", task.json, "print one JSON object")
      .duration("--time", task.seconds, "how long to measure")
      .number("--price", "PRICE", task.price, "what an hour of this machine costs")
      .text("--machines", "TABLE", machines,
            "also estimate time and cost on other machines: all of the built-in table, or those of a file")
      .flag("--print-machines", print_machines, "print the built-in table, to edit it; no job is needed")
      .duration("--within", task.within_seconds, "also show how many steps fit into this time")
      .number("--spend", "MONEY", task.spend, "also show how much of the training this money pays for")
      .text("--retrain", "INTERVAL", retrain,
            "also show what a month of training again costs: nightly, weekly, monthly, or a time such as 6h")
      .number("--records-per-day", "COUNT", task.samples_per_day,
              "new samples a day: also say whether to train anew, to go on, or to learn them as they come");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox)
      .example("sinew plan job.yaml --price 0.34 --within 8h")
      .example("sinew plan job.yaml --machines all --spend 20");
  if (!options.parse(arguments)) return kDone;
  if (print_machines) {
    std::fputs(std::string(advise::kMachineTable).c_str(), stdout);
    return kDone;
  }
  if (task.job.empty()) options.refuse("JOB is missing", "sinew plan job.yaml");
  if (task.spend > 0 && task.price <= 0 && machines.empty())
    options.refuse("--spend needs a price", "add --price PRICE, or --machines all");
  if (!retrain.empty()) task.retrain_seconds = advise::retraining_interval(retrain);
  if (!machines.empty()) {
    task.machines = machines == "all" ? std::string(advise::kMachineTable) : read_text(system_disk(), machines);
    advise::read_machines(task.machines, machines);  // a mistake is found before the job is measured
  }
  if (!prepare_training(task.job, task.overrides, "sinew plan", sandbox, "a scratch directory", task.sandbox))
    return kUsage;
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
