// Options of a run that are not part of the training itself: what is saved and written, when it ends, who computes.
#include "spec/option_words.h"

namespace sinew::spec {

using namespace words;

std::vector<Option> run_options() {
  using C = CheckpointOptions;
  using E = EarlyStoppingOptions;
  constexpr auto checkpoint = &Job::checkpoint;
  constexpr auto early = &Job::early_stopping;
  const Type mode = choice({"auto", "min", "max"});
  return {
      {"checkpoint.interval",
       at<checkpoint, &C::interval>(),
       interval(),
       "save this often; never: only the last state is saved",
       "",
       {},
       "every save_interval"},
      {"checkpoint.keep",
       at<checkpoint, &C::keep>(),
       whole(1, 1e6),
       "newest checkpoints kept",
       "",
       {},
       "save_total_limit"},
      {"checkpoint.keep_best",
       at<checkpoint, &C::keep_best>(),
       whole(0, 1e6),
       "best checkpoints kept besides",
       "",
       {},
       "save_top_k"},
      {"checkpoint.monitor",
       at<checkpoint, &C::monitor>(),
       metric(true),
       "the metric that says which is best; auto: the objective's, else early stopping's, else val/loss",
       "",
       {},
       "metric"},
      {"checkpoint.mode", at<checkpoint, &C::mode>(), mode, "whether a small or a large value is better"},
      {"checkpoint.mirror", at<checkpoint, &C::mirror>(), path(),
       "a second directory that gets a copy, each run below it in a directory of its own", "no copy"},
      {"early_stopping.monitor",
       at<early, &E::monitor>(),
       metric(false),
       "the metric that must improve",
       "training never stops early",
       {},
       "metric",
       true},
      {"early_stopping.mode", at<early, &E::mode>(), mode, "whether a small or a large value is better", "", kEarly},
      {"early_stopping.patience", at<early, &E::patience>(), whole(1, 1e6),
       "evaluations without improvement before training stops", "", kEarly},
      {"early_stopping.min_delta", at<early, &E::min_delta>(), number(kFromZero), "a smaller change is no improvement",
       "", kEarly},
      {"early_stopping.restore_best", at<early, &E::restore_best>(), flag(),
       "the model artifact holds the best weights", "", kEarly},
      {"objective",
       at<&Job::objective>(),
       objective(),
       "stop as soon as a metric is good enough; the report says met or not",
       "none",
       {},
       "goal target"},
      {"logging.interval",
       at<&Job::logging, &LoggingOptions::interval>(),
       duration(kAny),
       "write training metrics this often",
       "",
       {},
       "log_interval log_every"},
      {"logging.tensorboard", at<&Job::logging, &LoggingOptions::tensorboard>(), flag(), "write TensorBoard events"},
      {"budget.time", at<&Job::budget, &BudgetOptions::seconds>(), time(),
       "stop with a checkpoint and exit code 3 after this time", "no limit"},
      {"budget.training", at<&Job::budget, &BudgetOptions::training>(), Type{.kind = Kind::interval, .units = kCounted},
       "stop with a checkpoint and exit code 3 once so much of the training is done; a multiple of "
       "trainer.eval_interval ends with an evaluation"},
      {"budget.attempt", at<&Job::command, &CommandOptions::attempt_seconds>(), time(),
       "an attempt that takes longer is ended; retries.timeout says whether another follows", "no limit", kCommand,
       "timeout"},
  };
}

std::vector<Option> workers_options() {
  return {
      {"workers.min", at<&Job::workers, &WorkersOptions::min>(), whole(1, 4096),
       "processes needed to begin; the others join when they come"},
      {"workers.max",
       at<&Job::workers, &WorkersOptions::max>(),
       whole(1, 4096),
       "processes that train side by side, started anew when they die; never changes the result",
       "",
       {},
       "count processes num_workers world_size",
       true},
  };
}

std::vector<Option> tune_options() {
  using T = TuneOptions;
  constexpr auto tune = &Job::tune;
  return {
      {"tune.search", at<tune, &T::search>(), search(),
       "the options that `sinew tune` varies, each with a range or a list of values", "nothing is varied"},
      {"tune.trials", at<tune, &T::trials>(), whole(1, 1e6), "trainings in all", "", kTune,
       "n_trials num_samples max_trials"},
      {"tune.parallel", at<tune, &T::parallel>(), whole(1, 4096),
       "trainings side by side; auto: as many as the machine has cores free for, at any time", "", kTune,
       "n_jobs max_concurrent_trials"},
      {"tune.sampler", at<tune, &T::sampler>(),
       choice({"auto", "random", "grid", "sobol", "tpe", "bohb", "cmaes", "nearby", "gp", "trust_region", "pbt"}),
       "the algorithm that suggests the next trial", "", kTune, "search_alg algorithm"},
      {"tune.pruner", at<tune, &T::pruner>(), choice({"auto", "none", "asha", "hyperband", "median", "curve"}),
       "the rule that pauses or stops trials with little promise", "", kTune, "trial_scheduler", false, "stopper"},
      {"tune.monitor", at<tune, &T::monitor>(), metric(true),
       "the metric that is searched for; auto: the objective's, else checkpoint.monitor, or a command's "
       "early_stopping.monitor",
       "", kTune},
      {"tune.mode", at<tune, &T::mode>(), choice({"auto", "min", "max"}), "whether a small or a large value is better",
       "", kTune},
      {"tune.objectives", at<tune, &T::objectives>(), list(metric(false), 2, 8),
       "several metrics instead of tune.monitor: the trials that no other beats in all of them are kept",
       "one, tune.monitor", kTune, "metrics"},
      {"tune.directions",
       at<tune, &T::directions>(),
       list(choice({"auto", "min", "max"}), 2, 8),
       "of each of tune.objectives, whether a small or a large value is better",
       "by their names",
       {"tune.objectives", {}}},
      {"tune.constraints", at<tune, &T::constraints>(), list(objective(), 1, 16),
       "what a trial must meet to be any good, by what it measured when its value was", "none", kTune,
       "outcome_constraints"},
      {"tune.parameter_constraints", at<tune, &T::parameter_constraints>(), list(comparison(), 1, 64),
       "what must hold between the values of a trial: + - * / % and brackets, compared", "none", kTune, "forbidden"},
      {"tune.evaluations", at<tune, &T::evaluations>(), whole(2, 1e9),
       "times a whole trial measures the metric, which pruners that pause trials need to know; auto: "
       "trainer.max_duration by "
       "trainer.eval_interval, unknown of a command",
       "", kTune, "max_resource max_t"},
      {"tune.population",
       at<tune, &T::population>(),
       whole(2, 1000),
       "trainings that begin; tune.trials by this is in how many parts each is trained",
       "",
       {"tune.sampler", {"pbt"}},
       "population_size"},
      {"tune.seed", at<tune, &T::seed>(), whole(0, 18446744073709551615.0), "the suggestions' own", "", kTune},
      {"tune.time", at<tune, &T::seconds>(), time(), "begin no trial after this time; those that run end", "no limit",
       kTune, "timeout"},
      {"tune.cost", at<tune, &T::cost>(), number(kPositive), "begin no trial once those before have cost so much",
       "no limit", kTune},
      {"tune.price",
       at<tune, &T::price>(),
       number(kPositive),
       "what an hour of one trial costs, in the same currency",
       "none",
       {"tune.cost", {}}},
      {"tune.end_early", at<tune, &T::end_early>(), flag(), "end when another trial is not expected to gain much", "",
       kTune},
      {"tune.deterministic", at<tune, &T::deterministic>(), flag(),
       "the same trials however long each takes: what is known counts in the order trials began", "", kTune},
      {"tune.warm_start", at<tune, &T::warm_start>(), list(path(), 1, 100),
       "directories of earlier studies that tell where to begin", "none", kTune},
  };
}

}  // namespace sinew::spec
