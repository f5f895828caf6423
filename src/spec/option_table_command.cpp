// Lists the options of a job that runs a command instead of a training.
#include "spec/option_words.h"

namespace sinew::spec {

using namespace words;

std::vector<Option> command_options() {
  using C = CommandOptions;
  constexpr auto in = &Job::command;
  return {
      {"command",
       at<in, &C::words>(),
       list(word(), 1, 10000),
       "a program and its arguments, to run instead of a training; {params.NAME} is replaced by that parameter",
       "the training that the other sections describe",
       {},
       "cmd run exec args entrypoint script"},
      {"workdir", at<in, &C::workdir>(), path(), "working directory of the command", "the working directory of sinew",
       kCommand, "cwd working_dir directory"},
      {"grace", at<in, &C::grace_seconds>(), time(),
       "time from SIGTERM to SIGKILL, in which the command can save its state and end", "", kCommand,
       "grace_period termination_grace"},
      {"params", at<in, &C::params>(), values(),
       "values for the command: {params.lr} in its arguments, SINEW_PARAM_LR in its environment", "none", kCommand,
       "parameters hparams args arguments"},
      {"env", at<in, &C::env>(), values(), "environment variables of the command, in addition to those of sinew",
       "none", kCommand, "environment"},
  };
}

std::vector<Option> resource_options() {
  using C = CommandOptions;
  using S = ResourceOptions;
  using R = RetryOptions;
  using M = MetricsOptions;
  constexpr auto in = &Job::command;
  constexpr auto resources = &C::resources;
  constexpr auto retries = &C::retries;
  const Type times = whole(0, 1e6);
  return {
      {"resources.nproc", at<in, resources, &S::nproc>(), whole(1, 4096),
       "processes of the command that run side by side, each with its own RANK", "", kCommand,
       "processes nproc_per_node tasks"},
      {"resources.cpus", at<in, resources, &S::cpus>(), number({0, 65536}),
       "CPU cores for all processes together; also sets OMP_NUM_THREADS; 0: no limit", "", kCommand, "cpu cores"},
      {"resources.memory", at<in, resources, &S::memory>(), bytes(),
       "memory of all processes together; a command that needs more is killed as out of memory", "no limit", kCommand,
       "mem ram"},
      {"resources.pids", at<in, resources, &S::pids>(), whole(0, 1e7),
       "processes and threads at the same time; 0: no limit", "", kCommand, "max_processes"},
      {"retries.crash", at<in, retries, &R::crash>(), times, "restarts after a signal that sinew did not send", "",
       kCommand, "signal"},
      {"retries.out_of_memory", at<in, retries, &R::out_of_memory>(), times,
       "restarts after it exceeded resources.memory or the memory of the machine", "", kCommand, "oom"},
      {"retries.exit", at<in, retries, &R::exit>(), times, "restarts after an exit code except 0 and 75", "", kCommand,
       "failure error max_restarts max_retries"},
      {"retries.exit_codes", at<in, retries, &R::exit_codes>(), list(whole(1, 255), 1, 255),
       "the exit codes that retries.exit applies to", "all", kCommand, "codes"},
      {"retries.timeout", at<in, retries, &R::timeout>(), times, "restarts after it exceeded budget.attempt", "",
       kCommand},
      {"retries.preempted", at<in, retries, &R::preempted>(), times,
       "restarts after exit code 75 unasked: the command saved its state and wants a restart", "", kCommand},
      {"retries.backoff", at<in, retries, &R::backoff_seconds>(), time(),
       "wait before the second attempt; doubles for each further attempt; no wait after exit code 75", "", kCommand,
       "delay"},
      {"retries.longest", at<in, retries, &R::longest_seconds>(), time(), "longest wait between two attempts", "",
       kCommand, "max_delay backoff_max"},
      {"metrics.from", at<in, &C::metrics, &M::from>(), choice({"stdout", "file", "none"}),
       "stdout: lines of the command's output; file: a file that sinew reads while it grows", "", kCommand, "source",
       true},
      {"metrics.file", at<in, &C::metrics, &M::file>(), path(), "the file, relative to workdir",
       "the file that SINEW_METRICS_FILE names", kMetricsFile, "path"},
  };
}

}  // namespace sinew::spec
