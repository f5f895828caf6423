// The job file: what the user wants, said once, checked completely before anything heavy loads.
//
// For the two programs and every room that is configured by a job. It never touches data, models or the network: it
// turns YAML (or dotted overrides) into a `Job`, or into a list of every problem in the file, each with its place.
// Everything here is plain values and pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sinew::spec {

// ---- amounts with units --------------------------------------------------------------------------------------------

// "10ep" "500st" "100ksp" "2Mtok" "30m" "0.1dur" (of the whole training)
struct Duration {
  enum class Unit { epochs, steps, samples, tokens, seconds, fraction };
  double amount = 0;
  Unit unit = Unit::steps;
  bool operator==(const Duration&) const = default;
};
std::string to_string(const Duration& duration);  // the form parse accepts; exact

// `auto`, or a value the user gave. What auto means is decided once, before step 0, and written to resolved.yaml.
template <typename T>
using Auto = std::optional<T>;  // nullopt: auto

// ---- the job -------------------------------------------------------------------------------------------------------
// One struct a section. The defaults below are the defaults: the option table reads them from here.

// Weights to start from, key model.init_from. A short form: `init_from: runs/photos/last`.
struct WeightSource {
  std::string path;              // a checkpoint, run directory or .safetensors file; empty: the model's own start
  std::vector<std::string> map;  // "encoder.*=backbone.*": name in the file = name in the model; "head.*=": left out
  bool strict = true;            // every parameter is in the file, and nothing else
  bool operator==(const WeightSource&) const = default;
};

struct ModelOptions {
  // linear | svm | mlp | cnn | resnet18 | resnet34 | resnet50 | lstm | program | torchscript | library
  std::string name = "mlp";
  std::vector<int64_t> hidden = {256};       // mlp: sizes of the hidden layers
  std::vector<int64_t> channels = {32, 64};  // cnn: channels of the convolution blocks
  std::string activation = "relu";           // relu | gelu | tanh | silu
  std::string norm = "none";                 // none | batch; mlp and cnn
  double dropout = 0.0;                      // [0, 1)
  int64_t width = 64;                        // resnet: channels of the first stage
  std::string stem = "auto";                 // resnet: auto | imagenet | cifar
  int64_t embedding = 128;                   // lstm: size of a token's vector
  int64_t hidden_size = 128;                 // lstm
  int64_t layers = 1;                        // lstm
  bool bidirectional = false;                // lstm
  std::string file;                          // program: a .pt2; torchscript: a .pt; library: a .so
  std::vector<std::string> inputs;           // program, torchscript: "ids=0:16", "label=target"; empty: as they come
  std::vector<std::string> options;          // library: "width=64", for its code
  std::vector<std::string> freeze;           // name patterns of parameters that stay as they are
  std::vector<std::string> reinit;           // name patterns of parameters that begin anew
  WeightSource init_from;
  bool operator==(const ModelOptions&) const = default;
};

struct LossOptions {
  std::string name = "auto";          // auto | cross_entropy | mse | l1 | hinge | bce | program | library
  double label_smoothing = 0.0;       // cross_entropy, [0, 1)
  std::vector<double> class_weights;  // empty: all 1; else one a class
  std::string reduction = "mean";     // program: what its loss is, mean | sum …
  std::string over = "samples";       // … over samples | targets, those that are ignore_index left out
  int64_t ignore_index = -100;        // program
  std::string library;                // library: the .so; empty: model.file
  bool operator==(const LossOptions&) const = default;
};

// Where one part of the data lies. Exactly the fields its format needs are set.
struct DataSource {
  std::string path;    // file or folder (all formats but npy; idx: a folder with the usual names)
  std::string images;  // idx and npy: the inputs
  std::string labels;  // idx and npy: the targets
  bool given() const { return !path.empty() || !images.empty(); }
  bool operator==(const DataSource&) const = default;
};

struct ColumnOptions {
  std::string target;                    // csv, tsv, jsonl: the column to predict; required there
  std::vector<std::string> features;     // empty: every other column
  std::vector<std::string> categorical;  // columns to treat as categories though they look numeric
  std::vector<std::string> ignore;       // columns to leave out
  bool operator==(const ColumnOptions&) const = default;
};

struct ImageOptions {
  std::vector<int64_t> size;  // [height, width]; required for folders and lists of unequal images
  int64_t channels = 3;       // 1 | 3
  bool operator==(const ImageOptions&) const = default;
};

struct TextOptions {
  std::string tokens = "chars";  // chars | bytes
  int64_t window = 64;           // tokens in a sample; the target is the next token at every place
  bool operator==(const TextOptions&) const = default;
};

struct AugmentOptions {       // each a pure function of (seed, epoch, sample); in this order
  int64_t crop_padding = 0;   // pixels of zero padding around before a random crop back to size
  double flip = 0.0;          // probability of a left-right flip
  double rotate = 0.0;        // up to this many degrees either way
  double translate = 0.0;     // up to this fraction of the size either way, both axes
  std::vector<double> scale;  // [low, high] factor; empty: none
  double noise = 0.0;         // deviation of added Gaussian noise, in units of the [0,1] pixel range
  bool any() const;
  bool operator==(const AugmentOptions&) const = default;
};

struct DataOptions {
  // auto | idx | cifar10 | cifar100 | csv | tsv | jsonl | npy | npz | image_folder | image_list | text | library
  std::string format = "auto";
  std::string library;        // library: the .so; empty: model.file
  DataSource train;           // required
  DataSource val;             // empty: split.val of train
  DataSource test;            // empty: split.test of train
  double split_val = 0.0;     // key data.split.val, [0, 1)
  double split_test = 0.0;    // key data.split.test
  std::string task = "auto";  // auto | classification | regression
  ColumnOptions columns;
  ImageOptions image;
  TextOptions text;
  std::string normalize = "auto";  // auto | none: per-channel (images) or per-column mean and deviation of train
  AugmentOptions augment;
  std::string on_corrupt = "fail";  // fail | skip: bytes that were read and do not decode; a read error always fails
  Auto<int64_t> prefetch_threads;   // key data.prefetch.threads
  int64_t prefetch_bytes = 256LL << 20;  // key data.prefetch.memory, "256MiB": bound of decoded batches waiting
  bool operator==(const DataOptions&) const = default;
};

struct TrainerOptions {
  Duration max_duration = {10, Duration::Unit::epochs};
  int64_t batch_size = 64;             // global: samples in a step, whatever the number of workers
  Auto<int64_t> shards;                // S; auto: a function of this job file alone
  Auto<int64_t> lanes;                 // threads that compute shards; never changes the result
  std::string precision = "auto";      // auto | fp32 | bf16
  std::string memory_format = "auto";  // auto | contiguous | channels_last
  std::string device = "auto";         // auto | cpu | cuda
  double grad_clip_norm = 0.0;         // 0: off
  double ema_decay = 0.0;              // 0: off; else evaluation and the model artifact use the averaged weights
  bool drop_last = false;              // leave out an epoch's ragged last batch
  uint64_t seed = 0;
  Duration eval_interval = {1, Duration::Unit::epochs};
  int64_t eval_batch_size = 0;                                      // 0: batch_size
  std::vector<int64_t> batch_size_ramp;                             // batch sizes of the first stages; then batch_size
  Duration batch_size_ramp_interval = {1, Duration::Unit::epochs};  // length of a stage
  bool operator==(const TrainerOptions&) const = default;
};

struct OptimizerOptions {
  std::string name = "adamw";  // sgd | adam | adamw | rmsprop
  double lr = 1e-3;
  double weight_decay = 0.0;
  double momentum = 0.0;                     // sgd, rmsprop
  bool nesterov = false;                     // sgd
  std::vector<double> betas = {0.9, 0.999};  // adam, adamw
  double eps = 1e-8;                         // adam, adamw, rmsprop
  double alpha = 0.99;                       // rmsprop
  std::vector<std::string> lr_scale = {};    // "encoder.*=0.1": pattern of parameter names and factor of their lr
  bool operator==(const OptimizerOptions&) const = default;
};

struct SchedulerOptions {
  std::string name = "constant";                     // constant | step | cosine | linear | one_cycle
  Duration warmup = {0, Duration::Unit::steps};      // linear from 0 to lr; any name
  Duration step_size = {1, Duration::Unit::epochs};  // step: interval
  double gamma = 0.1;                                // step: factor at each interval
  double final_factor = 0.0;                         // cosine, linear: lr at the end as a fraction of lr
  bool operator==(const SchedulerOptions&) const = default;
};

struct CheckpointOptions {
  std::string interval = "1ep";  // a duration, or "never" (the last state is still saved)
  int64_t keep = 2;              // newest ones kept
  int64_t keep_best = 1;         // best ones by monitor kept besides
  std::string monitor = "auto";  // a metric name; auto: the objective's, else early stopping's, else val/loss
  std::string mode = "auto";     // auto | min | max
  std::string mirror;            // a second directory that gets a copy; empty: none
  bool operator==(const CheckpointOptions&) const = default;
};

struct EarlyStoppingOptions {
  std::string monitor;        // empty: off
  std::string mode = "auto";  // auto | min | max
  int64_t patience = 3;       // evaluations without improvement
  double min_delta = 0.0;
  bool restore_best = true;  // the model artifact holds the best weights
  bool operator==(const EarlyStoppingOptions&) const = default;
};

struct Objective {  // "val/accuracy >= 0.92"; training stops when met and the report says met or not
  std::string metric;
  bool at_least = true;
  double value = 0;
  bool operator==(const Objective&) const = default;
};

struct LoggingOptions {
  Duration interval = {50, Duration::Unit::steps};
  bool tensorboard = true;
  bool operator==(const LoggingOptions&) const = default;
};

struct BudgetOptions {
  double seconds = 0;              // key budget.time, "2h": stop with a checkpoint, exit code 3; 0: none
  std::string training = "never";  // likewise, once so much of trainer.max_duration is done
  bool operator==(const BudgetOptions&) const = default;
};

struct WorkersOptions {  // processes of one run; never part of the result
  int64_t min = 1, max = 1;
  bool operator==(const WorkersOptions&) const = default;
};

// One option that a study varies (tune.search): between two ends, or over listed values.
struct SearchParameter {
  enum class Kind { real, whole, choice };
  struct Condition {  // of another parameter, listed before: it must have one of these values
    std::string key;
    std::vector<std::string> values;
    bool operator==(const Condition&) const = default;
  };
  std::string key;  // dotted, of an option
  Kind kind = Kind::real;
  double low = 0, high = 0;          // both included
  bool log = false;                  // evenly in the logarithm
  double step = 0;                   // 0: none
  std::vector<std::string> choices;  // each as a job file has it: relu, [64, 64]
  bool ordered = false;              // the choices are in order
  std::vector<Condition> only_if;    // all must hold, or the option stays as the job has it
  bool operator==(const SearchParameter&) const = default;
};

struct TuneOptions {  // sinew tune; never part of one training
  std::vector<SearchParameter> search;
  int64_t trials = 50;
  Auto<int64_t> parallel;                          // trials side by side
  std::string sampler = "auto", pruner = "auto";   // as tune/ names them
  std::string monitor = "auto";                    // a metric name; auto: the objective's, else checkpoint.monitor's
  std::string mode = "auto";                       // auto | min | max
  std::vector<std::string> objectives;             // several metrics instead of the monitor
  std::vector<std::string> directions;             // of each, as mode; empty: by their names
  std::vector<Objective> constraints;              // what a good trial must meet besides
  std::vector<std::string> parameter_constraints;  // what must hold between values: base/comparison.h
  Auto<int64_t> evaluations;                       // of a whole trial
  int64_t population = 8;                          // of the sampler pbt
  uint64_t seed = 0;
  double seconds = 0;          // key tune.time; 0: none
  double cost = 0, price = 0;  // of all trials, 0: no limit; of an hour of one
  bool deterministic = false, end_early = false;
  std::vector<std::string> warm_start;  // directories of studies
  bool operator==(const TuneOptions&) const = default;
};

// One entry of a free section (params, env): a name of the user's own and one value.
struct NamedValue {
  enum class Kind { text, number, flag };
  std::string name, value;  // value: text as it is, a number or a flag as it was written
  Kind kind = Kind::text;
  std::string given{};  // of env, where it names variables: as it was written, and is written again
  bool operator==(const NamedValue&) const = default;
};

struct ResourceOptions {  // of a command; 0: as much as there is
  int64_t nproc = 1;      // processes started side by side, each with a RANK of its own
  double cpus = 0;        // for all of them together
  int64_t memory = 0;     // bytes, all of them together
  int64_t pids = 0;       // processes and threads at a time
  bool operator==(const ResourceOptions&) const = default;
};

struct RetryOptions {               // how often a command is started again, by what ended it
  int64_t crash = 0;                // a signal that nobody here sent
  int64_t out_of_memory = 0;        // over resources.memory, or the machine's
  int64_t exit = 0;                 // an exit code other than 0 and 75
  std::vector<int64_t> exit_codes;  // those of them that are worth another try; empty: all
  int64_t timeout = 0;              // budget.attempt
  int64_t preempted = 10;           // exit code 75 unasked: it saved, and wants to be started again
  double backoff_seconds = 1;       // key retries.backoff: before the second attempt; doubled for each further one
  double longest_seconds = 60;      // key retries.longest: no wait is longer
  bool operator==(const RetryOptions&) const = default;
};

struct MetricsOptions {         // where a command says its metrics
  std::string from = "stdout";  // stdout | file | none
  std::string file;             // file: relative to workdir; empty: the one SINEW_METRICS_FILE names
  bool operator==(const MetricsOptions&) const = default;
};

// A run of any command instead of a training. No section of a training stands beside it.
struct CommandOptions {
  std::vector<std::string> words;  // key command: the program and its arguments; empty: a training
  std::string workdir;             // key workdir; empty: where sinew was started
  double grace_seconds = 30;       // key grace: from SIGTERM to SIGKILL
  std::vector<NamedValue> params;  // key params: {params.lr} in the command, SINEW_PARAM_LR
  std::vector<NamedValue> env;     // key env
  ResourceOptions resources;
  RetryOptions retries;
  MetricsOptions metrics;
  double attempt_seconds = 0;  // key budget.attempt; 0: none
  bool given() const { return !words.empty(); }
  bool operator==(const CommandOptions&) const = default;
};

struct Job {
  std::string name = "job";
  CommandOptions command;
  ModelOptions model;
  LossOptions loss;
  DataOptions data;
  TrainerOptions trainer;
  OptimizerOptions optimizer;
  SchedulerOptions scheduler;
  CheckpointOptions checkpoint;
  EarlyStoppingOptions early_stopping;
  std::optional<Objective> objective;
  LoggingOptions logging;
  BudgetOptions budget;
  WorkersOptions workers;
  TuneOptions tune;
  bool operator==(const Job&) const = default;
};

// ---- reading -------------------------------------------------------------------------------------------------------

struct Problem {
  std::string file;          // file name, or "override" for one given on the command line
  int line = 0, column = 0;  // 1-based; 0 where there is none
  std::string what, hint;
};
std::string to_string(const Problem& problem);  // "job.yaml:3:5: unknown key 'modle' / did you mean 'model'?"

struct Reading {
  Job job;                        // meaningful only when problems is empty
  std::vector<Problem> problems;  // every problem, in file order
};

using Environment = std::map<std::string, std::string>;  // for ${NAME} in strings

// `overrides`: dotted, "optimizer.lr=3e-4"; values are YAML. Relative paths stay as they are (relative to the working
// directory of the command). Never throws for any bytes whatsoever.
Reading read_job(std::string_view yaml, std::string_view file_name, const std::vector<std::string>& overrides = {},
                 const Environment& environment = {});

// The first option that tune.search varies and an override gives a value: the job is one training then. Empty: none.
std::string overridden(const std::vector<SearchParameter>& search, const std::vector<std::string>& overrides);
// Options not at their defaults that have no effect with this data.format: for whoever finds out what `auto` means.
std::vector<Problem> without_effect(const DataOptions& data);

// ---- writing -------------------------------------------------------------------------------------------------------

using Reasons = std::map<std::string, std::string>;  // why an auto became what it is: dotted key -> reason
// Every option with its value, reasons as comments. read_job(to_yaml(job)) gives the same job.
std::string to_yaml(const Job& job, const Reasons& reasons = {});

// Options of the training that are not as by default, and the few every table shows; dotted keys, values as written.
std::map<std::string, std::string> changed_options(const Job& job);
// JSON Schema (draft 2020-12) of the job file; accepts exactly what read_job accepts, cross-field rules apart.
std::string json_schema();
std::string reference_markdown();  // docs/reference/job-file.md, made from the option table

// One option of the table, for --help and for rooms that list options.
struct OptionInfo {
  std::string key, type, default_value, help;
  std::vector<std::string> choices;
};
std::vector<OptionInfo> options();

// ---- a command's placeholders --------------------------------------------------------------------------------------

// `{params.NAME}` in the text, replaced by that parameter's value; whatever else stands in braces stays as it is.
// A name that `params` has not stays, too: read_job refuses it.
std::string fill_in(std::string_view text, const std::vector<NamedValue>& params);
std::vector<std::string> names_to_fill_in(std::string_view text);  // NAME of each placeholder, in order

// ---- shared by every reader of user text ---------------------------------------------------------------------------

std::optional<Duration> parse_duration(std::string_view text);  // nullopt: not a duration
std::optional<int64_t> parse_bytes(std::string_view text);      // "4GiB" "512MB" "100"
std::optional<Objective> parse_objective(std::string_view text);
std::string to_string(const Objective& objective);  // which parse_objective reads
struct Scale {
  std::string pattern;
  double factor = 1;
};
std::optional<Scale> parse_scale(std::string_view text);  // "encoder.*=0.1"; a factor from 0 to 1e6
// `*` in the pattern stands for any characters, also none; everything else for itself.
bool fits_pattern(std::string_view pattern, std::string_view name);
// The closest of `known` if it is close enough to be a slip of the hand; else "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace sinew::spec
