// Defines the job: what a job file says, as plain structs with the defaults of their options. Part of spec/spec.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
std::string to_string(const Duration& duration);  // exact; parse_duration reads it back

// A value that the user gave, or `auto`. The program decides once, before step 0, what auto means and writes the value
// to resolved.yaml.
template <typename T>
using Auto = std::optional<T>;  // nullopt: auto

// ---- the job -------------------------------------------------------------------------------------------------------
// One struct for each section. The option table takes its defaults from these initialisers.

// Key model.init_from: the weights that training starts from. Short form: `init_from: runs/photos/last`.
struct WeightSource {
  std::string path;  // a checkpoint, run directory or .safetensors file; empty: the model's own initialisation
  std::vector<std::string> map;  // "encoder.*=backbone.*": name in the file = name in the model; "head.*=": ignored
  bool strict = true;            // the file must hold every parameter and nothing else
  bool operator==(const WeightSource&) const = default;
};

// The options of model: tabular that no other architecture has. The defaults are those of RealMLP-TD
// (model/tabular.cpp).
struct TabularOptions {
  std::string input_scaling = "robust";       // robust | none
  std::string numeric_embedding = "pbld";     // pbld | none
  int64_t numeric_embedding_size = 4;         // numbers for each number, itself included
  int64_t frequencies = 16;                   // cosines of each number
  double frequency_scale = 0.1;               // standard deviation of their initial frequencies
  int64_t max_one_hot = 9;                    // a category with more inputs than these has an embedding
  int64_t category_embedding = 8;             // size of its vectors
  bool scaling_layer = true;                  // a learned factor for each input of the first layer
  bool parametric_activation = true;          // a learned strength of the activation for each unit
  std::string parametrization = "ntk";        // ntk | standard
  std::string initialization = "data";        // data | random
  std::string dropout_schedule = "flat_cos";  // constant | flat_cos
  bool clip_predictions = true;               // regression: to the range of the training targets
  double scaling_lr_factor = 6.0, numeric_lr_factor = 0.1, activation_lr_factor = 0.1, bias_lr_factor = 0.1;
  double bias_decay_factor = 0.0;  // of the weight decay of the biases
  bool operator==(const TabularOptions&) const = default;
};

struct ModelOptions {
  // linear | svm | mlp | tabular | cnn | resnet18 | resnet34 | resnet50 | lstm | program | torchscript | library
  std::string name = "mlp";
  std::vector<int64_t> hidden = {256};       // mlp, tabular: sizes of the hidden layers
  std::vector<int64_t> channels = {32, 64};  // cnn: channels of the convolution blocks
  std::string activation = "relu";           // auto | relu | gelu | tanh | silu | selu | mish
  std::string norm = "none";                 // none | batch; mlp and cnn
  double dropout = 0.0;                      // [0, 1)
  TabularOptions tabular;                    // keys model.input_scaling and so on
  int64_t width = 64;                        // resnet: channels of the first stage
  std::string stem = "auto";                 // resnet: auto | imagenet | cifar
  int64_t embedding = 128;                   // lstm: size of a token's vector
  int64_t hidden_size = 128;                 // lstm
  int64_t layers = 1;                        // lstm
  bool bidirectional = false;                // lstm
  std::string file;                          // program: a .pt2; torchscript: a .pt; library: a .so
  std::vector<std::string> inputs;   // program, torchscript: "ids=0:16", "label=target"; empty: input, then target
  std::vector<std::string> options;  // library: "width=64", passed to its code
  std::vector<std::string> freeze;   // name patterns of parameters that training does not change
  std::vector<std::string> reinit;   // name patterns of parameters that are initialised again
  WeightSource init_from;
  bool operator==(const ModelOptions&) const = default;
};

struct LossOptions {
  std::string name = "auto";          // auto | cross_entropy | mse | l1 | hinge | bce | program | library
  double label_smoothing = 0.0;       // cross_entropy, [0, 1)
  std::vector<double> class_weights;  // empty: all 1; otherwise one for each class
  bool balanced = false;              // weights from the number of training samples of each class
  double focal_gamma = 0.0;           // cross_entropy; 0: off
  std::string reduction = "mean";     // program: mean | sum; how its loss combines the terms
  std::string over = "samples";       // program: samples | targets (except ignore_index); the loss has a term for each
  int64_t ignore_index = -100;        // program
  std::string library;                // library: the .so; empty: model.file
  bool operator==(const LossOptions&) const = default;
};

// The files of one split of the data. Exactly the fields that its format needs are set.
struct DataSource {
  std::string path;    // file or folder (all formats except npy; idx: a folder with the usual names)
  std::string images;  // idx and npy: the inputs
  std::string labels;  // idx and npy: the targets
  bool given() const { return !path.empty() || !images.empty(); }
  bool operator==(const DataSource&) const = default;
};

// How the cells of a table's file are read; `auto` is decided from the beginning of the file. jsonl has only `dates`.
struct TableOptions {
  std::string sep = "auto";        // auto | comma | semicolon | tab | pipe
  std::string encoding = "auto";   // auto | utf-8 | utf-16le | utf-16be | latin-1 | windows-1252
  std::string decimal = "auto";    // auto | point | comma
  std::string thousands = "auto";  // auto | none | comma | point | space | apostrophe
  std::string header = "auto";     // auto | first_line | none
  std::string dates = "auto";      // auto | day_first | month_first: how 3/4/2024 is read
  bool operator==(const TableOptions&) const = default;
};

// The lists of kinds name columns whose kind the user decides; every other column's kind is decided from its values.
struct ColumnOptions {
  std::string target;                         // csv, tsv, jsonl: the column to predict; required
  std::vector<std::string> features = {};     // empty: all other columns
  std::vector<std::string> categorical = {};  // one input for each value, even if the values are numbers
  std::vector<std::string> ignore = {};       // columns that are not read
  std::vector<std::string> numeric = {};
  std::vector<std::string> boolean = {};
  std::vector<std::string> date = {};
  std::vector<std::string> text = {};
  std::string on_bad_cell = "error";  // error | missing: a value that does not fit the kind of its column
  bool operator==(const ColumnOptions&) const = default;
};

struct ImageOptions {
  std::vector<int64_t> size;  // [height, width]; required for folders and lists of unequal images
  int64_t channels = 3;       // 1 | 3
  bool operator==(const ImageOptions&) const = default;
};

struct TextOptions {
  std::string tokens = "chars";  // chars | bytes
  int64_t window = 64;           // tokens of a sample; at each position the target is the next token
  bool operator==(const TextOptions&) const = default;
};

struct AugmentOptions {       // applied in this order; each a pure function of (seed, epoch, sample)
  int64_t crop_padding = 0;   // pixels of zero padding at each side before a random crop to the original size
  double flip = 0.0;          // probability of a left-right flip
  double rotate = 0.0;        // rotation by up to this many degrees in either direction
  double translate = 0.0;     // shift by up to this fraction of the size, in either direction, on both axes
  std::vector<double> scale;  // [low, high] of the random factor; empty: no scaling
  double noise = 0.0;         // standard deviation of added Gaussian noise; pixels are in [0, 1]
  bool any() const;
  bool operator==(const AugmentOptions&) const = default;
};

struct DataOptions {
  // auto | idx | cifar10 | cifar100 | csv | tsv | jsonl | npy | npz | image_folder | image_list | webdataset | text |
  // text_folder | library
  std::string format = "auto";
  std::string library;        // library: the .so; empty: model.file
  DataSource train;           // required
  DataSource val;             // if empty, data.split.val takes a part of train
  DataSource test;            // if empty, data.split.test takes a part of train
  double split_val = 0.0;     // key data.split.val, [0, 1)
  double split_test = 0.0;    // key data.split.test
  bool stratify = true;       // key data.split.stratify: every class keeps its share in every split
  std::string split_group;    // key data.split.group: a column of a table; rows of one group stay in one split
  std::string split_by;       // key data.split.by: a column of a table; the last rows are test, then validation
  int64_t folds = 0;          // key data.split.folds: folds of a cross-validation, [2, 1000]; 0: none
  Auto<int64_t> fold;         // key data.split.fold: the fold that is validation data; auto: each in turn
  std::string task = "auto";  // auto | classification | regression
  TableOptions table;
  ColumnOptions columns;
  ImageOptions image;
  TextOptions text;
  std::string normalize = "auto";  // auto | none; auto: by train's mean and standard deviation, per channel or column
  AugmentOptions augment;
  std::string on_corrupt = "fail";       // fail | skip, for samples that do not decode; a read error always fails
  Auto<int64_t> prefetch_threads;        // key data.prefetch.threads
  int64_t prefetch_bytes = 256LL << 20;  // key data.prefetch.memory, "256MiB": limit of the decoded batches that wait
  // Whether `sinew train` trains once for each fold. A single training is one of a fold, by default the first.
  bool trains_folds() const { return folds > 0 && !fold; }
  // Whether validation data are taken from train.
  bool takes_val() const { return split_val > 0 || folds > 0; }
  bool operator==(const DataOptions&) const = default;
};

struct TrainerOptions {
  Duration max_duration = {10, Duration::Unit::epochs};
  int64_t batch_size = 64;             // samples in a step, over all workers
  Auto<int64_t> shards;                // S; auto depends on this file, and on the memory where it is scarce
  Auto<int64_t> lanes;                 // threads that compute shards; no effect on the result
  std::string precision = "auto";      // auto | fastest | fp32 | bf16
  std::string memory_format = "auto";  // auto | fastest | contiguous | channels_last
  std::string device = "auto";         // auto | cpu | cuda
  double grad_clip_norm = 0.0;         // 0: off
  double ema_decay = 0.0;              // 0: off; otherwise evaluation and the exported model use averaged weights
  bool drop_last = false;              // skip the incomplete last batch of an epoch
  uint64_t seed = 0;
  Duration eval_interval = {1, Duration::Unit::epochs};
  int64_t eval_batch_size = 0;           // 0: batch_size
  std::vector<int64_t> batch_size_ramp;  // batch sizes of the first stages; batch_size follows
  Duration batch_size_ramp_interval = {1, Duration::Unit::epochs};  // length of a stage
  bool operator==(const TrainerOptions&) const = default;
};

struct OptimizerOptions {
  std::string name = "adamw";  // sgd | adam | adamw | rmsprop
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::string weight_decay_schedule = "constant";  // constant | flat_cos
  double momentum = 0.0;                           // sgd, rmsprop
  bool nesterov = false;                           // sgd
  std::vector<double> betas = {0.9, 0.999};        // adam, adamw
  double eps = 1e-8;                               // adam, adamw, rmsprop
  double alpha = 0.99;                             // rmsprop
  std::vector<std::string> lr_scale = {};  // "encoder.*=0.1": pattern of parameter names, and the factor of their lr
  bool operator==(const OptimizerOptions&) const = default;
};

struct SchedulerOptions {
  std::string name = "constant";                     // constant | step | cosine | linear | one_cycle | coslog4
  Duration warmup = {0, Duration::Unit::steps};      // any scheduler: lr rises linearly from 0 at the start
  Duration step_size = {1, Duration::Unit::epochs};  // step: interval
  double gamma = 0.1;                                // step: factor at each interval
  double final_factor = 0.0;                         // cosine, linear: lr at the end as a fraction of lr
  bool operator==(const SchedulerOptions&) const = default;
};

struct CheckpointOptions {
  std::string interval = "1ep";  // a duration between two checkpoints, or "never" (the last state is still saved)
  int64_t keep = 2;              // how many of the newest checkpoints are kept
  int64_t keep_best = 1;         // how many of the best ones, by monitor, are kept as well
  std::string monitor = "auto";  // a metric; auto: that of objective, else of early_stopping, else val/loss
  std::string mode = "auto";     // auto | min | max
  std::string mirror;            // a second directory that gets copies; empty: no copies
  bool operator==(const CheckpointOptions&) const = default;
};

struct EarlyStoppingOptions {
  std::string monitor;        // empty: off
  std::string mode = "auto";  // auto | min | max
  int64_t patience = 3;       // training stops after this many evaluations without improvement
  double min_delta = 0.0;
  bool restore_best = true;  // the exported model has the best weights
  bool operator==(const EarlyStoppingOptions&) const = default;
};

// The probability from which a sample of two classes counts as one of the second class. Short form: `threshold: f1`.
struct ThresholdOptions {
  // f1 | accuracy | balanced_accuracy | youden | mcc: the end of a training chooses the threshold that is best by this
  // metric on the validation data; empty: not given
  std::string metric;
  double value = 0;  // a fixed threshold, (0, 1); 0: not given
  bool given() const { return !metric.empty() || value > 0; }
  bool operator==(const ThresholdOptions&) const = default;
};

// "val/accuracy >= 0.92": training stops when the objective is met, and the report says whether it was met
struct Objective {
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
  double seconds = 0;  // key budget.time, "2h"; the whole run ends in this time, with exit code 3; 0: no limit
  std::string training = "never";  // after this part of the training the run stops in the same way; "never": no limit
  int64_t memory = 0;  // bytes of a run's workers on one machine, together; decides auto shards and lanes; 0: no limit
  double cost = 0, price = 0;  // the run may cost so much, at the price of an hour; 0: no limit
  // Key budget.energy: the run may use so many kWh. `watts` is the power of its machines; 0: energy counters tell it.
  double kilowatt_hours = 0, watts = 0;
  bool operator==(const BudgetOptions&) const = default;
};

// The time in which the tightest limit of a budget ends a run, and the option that sets this limit.
struct TimeLimit {
  double seconds = 0;  // of the whole run; 0: no limit
  std::string option = "budget.time";
  bool operator==(const TimeLimit&) const = default;
};
// The energy in J that a run had used after so many seconds, as counters measured it. `watts`: how much it uses now.
struct MeasuredEnergy {
  double joules = 0, seconds = 0, watts = 0;  // watts 0: not known yet
};
// A limit of energy counts only if the power is given or was measured. A measured one moves with the power.
TimeLimit time_limit(const BudgetOptions& budget, const MeasuredEnergy& measured = {});
// The setting of `option`, one of those that TimeLimit names, with which a run may take so many seconds:
// "budget.cost=4". `watts`: the power of the machines.
std::string budget_setting(const std::string& option, const BudgetOptions& budget, double seconds, double watts);

struct WorkersOptions {  // processes of one run; no effect on the result
  int64_t min = 1, max = 1;
  bool operator==(const WorkersOptions&) const = default;
};

struct ClusterOptions {  // how the members of a group watch one another; no effect on the result
  double audit = 0.001;  // the part of the shards that another member computes again
  bool operator==(const ClusterOptions&) const = default;
};

// One option that a study varies (tune.search): over a range, or over listed values.
struct SearchParameter {
  enum class Kind { real, whole, choice };
  struct Condition {  // an earlier parameter must have one of these values
    std::string key;
    std::vector<std::string> values;
    bool operator==(const Condition&) const = default;
  };
  std::string key;  // the dotted key of an option
  Kind kind = Kind::real;
  double low = 0, high = 0;          // inclusive
  bool log = false;                  // uniform on a logarithmic scale
  double step = 0;                   // distance between allowed values; 0: any value
  std::vector<std::string> choices;  // in the form of a job file: relu, [64, 64]
  bool ordered = false;              // the choices are ordered
  std::vector<Condition> only_if;    // if one does not hold, the option keeps the job's value
  bool operator==(const SearchParameter&) const = default;
};

struct TuneOptions {  // sinew tune; a single training ignores it
  std::vector<SearchParameter> search;
  int64_t trials = 50;
  Auto<int64_t> parallel;                          // how many trials run at the same time
  std::string sampler = "auto", pruner = "auto";   // names that src/tune defines
  std::string monitor = "auto";                    // a metric; auto: that of objective, else checkpoint.monitor
  std::string mode = "auto";                       // auto | min | max
  std::vector<std::string> objectives;             // several metrics instead of the monitor
  std::vector<std::string> directions;             // the mode of each objective; empty: by the metrics' names
  std::vector<Objective> constraints;              // conditions on metrics that a feasible trial meets
  std::vector<std::string> parameter_constraints;  // conditions between parameters (base/comparison.h)
  Auto<int64_t> evaluations;                       // number of evaluations of a completed trial
  int64_t population = 8;                          // sampler pbt: number of members
  uint64_t seed = 0;
  double seconds = 0;          // key tune.time: no trial starts after it; 0: no limit
  double cost = 0, price = 0;  // limit for all trials, 0: no limit; price of an hour of one trial
  bool deterministic = false, end_early = false;
  std::vector<std::string> warm_start;  // directories of studies
  bool operator==(const TuneOptions&) const = default;
};

// One entry of params or env: a name that the user chooses, and one value.
struct NamedValue {
  enum class Kind { text, number, flag };
  std::string name, value;  // numbers and flags as they were written
  Kind kind = Kind::text;
  std::string given{};  // env: the text with its ${NAME}, if it has any; to_yaml writes this instead of the value
  bool operator==(const NamedValue&) const = default;
};

struct ResourceOptions {  // limits of a command; 0: no limit
  int64_t nproc = 1;      // processes that run side by side, each with its own RANK
  double cpus = 0;        // cores, for all processes together
  int64_t memory = 0;     // bytes, for all processes together
  int64_t pids = 0;       // processes and threads at the same time
  bool operator==(const ResourceOptions&) const = default;
};

struct RetryOptions {               // how often a command is restarted, for each exit reason
  int64_t crash = 0;                // a signal that sinew did not send
  int64_t out_of_memory = 0;        // it exceeded resources.memory or the machine's memory
  int64_t exit = 0;                 // an exit code except 0 and 75
  std::vector<int64_t> exit_codes;  // restart only after these codes; empty: after all
  int64_t timeout = 0;              // it exceeded budget.attempt
  int64_t preempted = 10;           // it exited with code 75 on its own: it has saved its state and wants a restart
  double backoff_seconds = 1;       // key retries.backoff: wait before the second attempt; doubles each time
  double longest_seconds = 60;      // key retries.longest: limit of the wait
  bool operator==(const RetryOptions&) const = default;
};

struct MetricsOptions {         // where a command reports its metrics
  std::string from = "stdout";  // stdout | file | none
  std::string file;             // relative to workdir; empty: the file that SINEW_METRICS_FILE names
  bool operator==(const MetricsOptions&) const = default;
};

// The options of a job that runs a command instead of a training. Such a job has none of a training's sections.
struct CommandOptions {
  std::vector<std::string> words;  // key command: the program and its arguments; empty: a training
  std::string workdir;             // key workdir; empty: the working directory of sinew
  double grace_seconds = 30;       // key grace: time from SIGTERM to SIGKILL
  std::vector<NamedValue> params;  // key params: {params.lr} in the command, SINEW_PARAM_LR
  std::vector<NamedValue> env;     // key env
  ResourceOptions resources;
  RetryOptions retries;
  MetricsOptions metrics;
  double attempt_seconds = 0;  // key budget.attempt: time limit of an attempt; 0: no limit
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
  ThresholdOptions threshold;
  std::optional<Objective> objective;
  LoggingOptions logging;
  BudgetOptions budget;
  WorkersOptions workers;
  ClusterOptions cluster;
  TuneOptions tune;
  bool operator==(const Job&) const = default;
};

}  // namespace sinew::spec
