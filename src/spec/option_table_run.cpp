// Lists the options around the training: what a run saves and writes, when it ends, which processes compute, and what a
// study varies.
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
       "time between two checkpoints; never: only the last state is saved",
       "",
       {},
       "every save_interval"},
      {"checkpoint.keep",
       at<checkpoint, &C::keep>(),
       whole(1, 1e6),
       "how many of the newest checkpoints are kept",
       "",
       {},
       "save_total_limit"},
      {"checkpoint.keep_best",
       at<checkpoint, &C::keep_best>(),
       whole(0, 1e6),
       "how many of the best checkpoints are kept as well; at least one if early_stopping restores it",
       "",
       {},
       "save_top_k"},
      {"checkpoint.monitor",
       at<checkpoint, &C::monitor>(),
       metric(true),
       "the metric that decides which is best; auto: of the objective, else of early_stopping, else val/loss",
       "",
       {},
       "metric"},
      {"checkpoint.mode", at<checkpoint, &C::mode>(), mode, "min: smaller values are better; max: larger ones"},
      {"checkpoint.mirror", at<checkpoint, &C::mirror>(), path(),
       "a second directory that gets copies; each run has its own directory below it", "no copy"},
      {"early_stopping.monitor",
       at<early, &E::monitor>(),
       metric(false),
       "the metric that must improve",
       "training never stops early",
       {},
       "metric",
       true},
      {"early_stopping.mode", at<early, &E::mode>(), mode, "min: smaller values are better; max: larger ones", "",
       kEarly},
      {"early_stopping.patience", at<early, &E::patience>(), whole(1, 1e6),
       "evaluations without improvement before training stops", "", kEarly},
      {"early_stopping.min_delta", at<early, &E::min_delta>(), number(kFromZero),
       "smaller changes do not count as improvements", "", kEarly},
      {"early_stopping.restore_best", at<early, &E::restore_best>(), flag(),
       "export the best weights instead of the last", "", kEarly},
      {"objective",
       at<&Job::objective>(),
       objective(),
       "training stops when this holds; the report says whether it was met",
       "none",
       {},
       "goal target"},
      {"logging.interval",
       at<&Job::logging, &LoggingOptions::interval>(),
       duration(kAny),
       "time between two records of training metrics",
       "",
       {},
       "log_interval log_every"},
      {"logging.tensorboard", at<&Job::logging, &LoggingOptions::tensorboard>(), flag(), "write TensorBoard events"},
  };
}

std::vector<Option> budget_options() {
  return {
      {"budget.time", at<&Job::budget, &BudgetOptions::seconds>(), time(),
       "time limit of the run; a training stops early enough to save, evaluate and test in it; exit code 3",
       "no limit"},
      {"budget.cost", at<&Job::budget, &BudgetOptions::cost>(), number(kPositive),
       "the run may cost so much, at budget.price an hour; it ends as with budget.time, and the tightest limit counts",
       "no limit"},
      {"budget.price",
       at<&Job::budget, &BudgetOptions::price>(),
       number(kPositive),
       "price of an hour of all machines of the run together, in the same currency",
       "none",
       {"budget.cost", {}}},
      {"budget.energy", at<&Job::budget, &BudgetOptions::kilowatt_hours>(), number(kPositive),
       "the run may use so many kWh at budget.watts, or as the energy counters of the processor measure it: only those "
       "of the leader's machine count; it ends as with budget.time",
       "no limit"},
      {"budget.watts",
       at<&Job::budget, &BudgetOptions::watts>(),
       number(kPositive),
       "mean power in W of all machines of the run together, such as a meter at the plug shows it",
       "measured by the energy counters of the machine",
       {"budget.energy", {}},
       "power"},
      {"budget.training", at<&Job::budget, &BudgetOptions::training>(), Type{.kind = Kind::interval, .units = kCounted},
       "after this part of the training, stop with a checkpoint and exit code 3; a multiple of "
       "trainer.eval_interval ends with an evaluation"},
      {"budget.memory",
       at<&Job::budget, &BudgetOptions::memory>(),
       bytes(),
       "most memory of the run's workers on a machine, together; trainer.shards and trainer.lanes are chosen to fit it "
       "and the limit of the cgroup, if they are auto",
       "no limit, and nothing is measured",
       {},
       "max_memory memory_limit ram"},
      {"budget.attempt", at<&Job::command, &CommandOptions::attempt_seconds>(), time(),
       "time limit of an attempt; retries.timeout says whether another attempt follows", "no limit", kCommand,
       "timeout"},
  };
}

std::vector<Option> workers_options() {
  return {
      {"workers.min", at<&Job::workers, &WorkersOptions::min>(), whole(1, 4096),
       "number of processes at which training starts; others join later"},
      {"workers.max",
       at<&Job::workers, &WorkersOptions::max>(),
       whole(1, 4096),
       "number of processes that train, restarted when they die; no effect on the result",
       "",
       {},
       "count processes num_workers world_size",
       true},
  };
}

std::vector<Option> cluster_options() {
  return {
      {"cluster.audit",
       at<&Job::cluster, &ClusterOptions::audit>(),
       number(kProbability),
       "part of the shards that another process computes again, to compare the results bit by bit; 0: none, 1: all; no "
       "effect on the result",
       "",
       {},
       "verify recompute"},
  };
}

std::vector<Option> threshold_options() {
  return {
      {"threshold.metric",
       at<&Job::threshold, &ThresholdOptions::metric>(),
       choice({"f1", "accuracy", "balanced_accuracy", "youden", "mcc"}),
       "the end of the training chooses the threshold with the best value of this metric on the validation data; "
       "f1: of the second class",
       "the more probable class",
       {},
       "scoring",
       true},
      {"threshold.value", at<&Job::threshold, &ThresholdOptions::value>(), number({0, 1, true, true}),
       "a fixed threshold: a probability of the second class", "not fixed"},
  };
}

std::vector<Option> tune_options() {
  using T = TuneOptions;
  constexpr auto tune = &Job::tune;
  return {
      {"tune.search", at<tune, &T::search>(), search(),
       "the options that `sinew tune` varies, each with a range or a list of values", "nothing varies"},
      {"tune.trials", at<tune, &T::trials>(), whole(1, 1e6), "number of trials in total", "", kTune,
       "n_trials num_samples max_trials"},
      {"tune.parallel", at<tune, &T::parallel>(), whole(1, 4096),
       "number of trials that run at the same time; auto: as many as the machine has free cores for", "", kTune,
       "n_jobs max_concurrent_trials"},
      {"tune.sampler", at<tune, &T::sampler>(),
       choice({"auto", "random", "grid", "sobol", "tpe", "bohb", "cmaes", "nearby", "gp", "trust_region", "pbt"}),
       "the method that suggests trials", "", kTune, "search_alg algorithm"},
      {"tune.pruner", at<tune, &T::pruner>(), choice({"auto", "none", "asha", "hyperband", "median", "curve"}),
       "the method that pauses or stops unpromising trials", "", kTune, "trial_scheduler", false, "stopper"},
      {"tune.monitor", at<tune, &T::monitor>(), metric(true),
       "the metric to optimise; auto: of the objective, else checkpoint.monitor, for a command "
       "early_stopping.monitor",
       "", kTune},
      {"tune.mode", at<tune, &T::mode>(), choice({"auto", "min", "max"}),
       "min: smaller values are better; max: larger ones", "", kTune},
      {"tune.objectives", at<tune, &T::objectives>(), list(metric(false), 2, 8),
       "several metrics instead of tune.monitor; the study finds the trials on their Pareto front",
       "a single metric: tune.monitor", kTune, "metrics"},
      {"tune.directions",
       at<tune, &T::directions>(),
       list(choice({"auto", "min", "max"}), 2, 8),
       "min or max for each of tune.objectives",
       "by the metrics' names",
       {"tune.objectives", {}}},
      {"tune.constraints", at<tune, &T::constraints>(), list(objective(), 1, 16),
       "conditions that a trial must meet, for the metrics that it measures together with its value", "none", kTune,
       "outcome_constraints"},
      {"tune.parameter_constraints", at<tune, &T::parameter_constraints>(), list(comparison(), 1, 64),
       "comparisons that the values of a trial must meet, with + - * / % and brackets", "none", kTune, "forbidden"},
      {"tune.evaluations", at<tune, &T::evaluations>(), whole(2, 1e9),
       "how often a complete trial measures the metric, for methods that pause trials; auto: trainer.max_duration / "
       "trainer.eval_interval, unknown for a command",
       "", kTune, "max_resource max_t"},
      {"tune.population",
       at<tune, &T::population>(),
       whole(2, 1000),
       "number of members; each trains for tune.trials / tune.population generations",
       "",
       {"tune.sampler", {"pbt"}},
       "population_size"},
      {"tune.seed", at<tune, &T::seed>(), whole(0, 18446744073709551615.0), "seed of the suggestions", "", kTune},
      {"tune.time", at<tune, &T::seconds>(), time(), "start no trial after this time; running trials finish",
       "no limit", kTune, "timeout"},
      {"tune.cost", at<tune, &T::cost>(), number(kPositive),
       "start no trial after the earlier trials have cost this much", "no limit", kTune},
      {"tune.price",
       at<tune, &T::price>(),
       number(kPositive),
       "price of an hour of one trial, in the same currency",
       "none",
       {"tune.cost", {}}},
      {"tune.end_early", at<tune, &T::end_early>(), flag(), "end when another trial is not expected to gain much", "",
       kTune},
      {"tune.deterministic", at<tune, &T::deterministic>(), flag(),
       "suggest the same trials however long each one takes: results count in the order in which the trials started",
       "", kTune},
      {"tune.warm_start", at<tune, &T::warm_start>(), list(path(), 1, 100),
       "directories of earlier studies whose results the sampler starts with", "none", kTune},
  };
}

}  // namespace sinew::spec
