// The options of a command that is run instead of a training.
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
       "any program and its arguments, run instead of a training; {params.NAME} stands for a parameter",
       "the training that the other sections describe",
       {},
       "cmd run exec args entrypoint script"},
      {"workdir", at<in, &C::workdir>(), path(), "where the command is run", "where sinew was started", kCommand,
       "cwd working_dir directory"},
      {"grace", at<in, &C::grace_seconds>(), time(),
       "how long the command has from SIGTERM on to save and end, before it is killed", "", kCommand,
       "grace_period termination_grace"},
      {"params", at<in, &C::params>(), values(),
       "numbers, words and flags for the command: {params.lr} in it, SINEW_PARAM_LR in its environment", "none",
       kCommand, "parameters hparams args arguments"},
      {"env", at<in, &C::env>(), values(), "environment variables of the command, besides those sinew was started with",
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
       "processes of the command side by side, each with a RANK of its own", "", kCommand,
       "processes nproc_per_node tasks"},
      {"resources.cpus", at<in, resources, &S::cpus>(), number({0, 65536}),
       "processors for all of them together; also OMP_NUM_THREADS; 0: no limit", "", kCommand, "cpu cores"},
      {"resources.memory", at<in, resources, &S::memory>(), bytes(),
       "memory of all of them together; what takes more is ended as out of memory", "no limit", kCommand, "mem ram"},
      {"resources.pids", at<in, resources, &S::pids>(), whole(0, 1e7), "processes and threads at a time; 0: no limit",
       "", kCommand, "max_processes"},
      {"retries.crash", at<in, retries, &R::crash>(), times, "after a signal that nobody here sent", "", kCommand,
       "signal"},
      {"retries.out_of_memory", at<in, retries, &R::out_of_memory>(), times,
       "after it took more memory than resources.memory, or than there was", "", kCommand, "oom"},
      {"retries.exit", at<in, retries, &R::exit>(), times, "after an exit code other than 0 and 75", "", kCommand,
       "failure error max_restarts max_retries"},
      {"retries.exit_codes", at<in, retries, &R::exit_codes>(), list(whole(1, 255), 1, 255),
       "the exit codes that retries.exit is for", "all", kCommand, "codes"},
      {"retries.timeout", at<in, retries, &R::timeout>(), times, "after budget.attempt ended it", "", kCommand},
      {"retries.preempted", at<in, retries, &R::preempted>(), times,
       "after exit code 75 that nobody asked for: it saved, and wants to be started again", "", kCommand},
      {"retries.backoff", at<in, retries, &R::backoff_seconds>(), time(),
       "wait before the second attempt; doubled for each one after it, none after exit code 75", "", kCommand, "delay"},
      {"retries.longest", at<in, retries, &R::longest_seconds>(), time(), "no wait is longer", "", kCommand,
       "max_delay backoff_max"},
      {"metrics.from", at<in, &C::metrics, &M::from>(), choice({"stdout", "file", "none"}),
       "stdout: lines among the command's own output; file: a file that is read while it grows", "", kCommand, "source",
       true},
      {"metrics.file", at<in, &C::metrics, &M::file>(), path(), "the file, relative to workdir",
       "the one SINEW_METRICS_FILE names", kMetricsFile, "path"},
  };
}

}  // namespace sinew::spec
