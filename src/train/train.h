// Training: a step is a fixed list of shards, and its result does not depend on which worker computes which shard.
//
// worker/ runs this code, and distribute/ implements Reducer over several members. A step reads the state at t and, for
// each shard, the samples and random keys of (t, shard). It adds the shards' sums in a fixed tree over shard indices
// and divides once by the step's total weight. It then commits parameters, optimizer state, buffers and cursor at t+1.
// The result does not depend on the number of lanes, on time or on the order of arrival. A type belongs to one thread
// unless its comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/advise.h"
#include "base/activity_board.h"
#include "base/audit.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/mark.h"
#include "base/purpose.h"
#include "base/tree.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "loop/loop.h"
#include "model/model.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::train {

class Lanes;

// ---- contributions and their reduction -----------------------------------------------------------------------------

// The sums of one shard (a leaf of the tree) or of several shards (a node). They are never means: only the reduced
// result is divided, once.
struct Contribution {
  // for each parameter, float32, in the parameter's memory order; undefined if absent
  std::vector<torch::Tensor> gradients;
  // For each buffer: the float64 sum of samples * delta. For an integer buffer: its delta, which is equal in all
  // shards.
  std::vector<torch::Tensor> buffers;
  // True if the deltas of an integer buffer are not equal. This is a part of the sum and not an error, because not
  // every member adds these shards: so all members learn of it, at the same step.
  bool buffers_conflict = false;
  double loss = 0;    // sum of weighted losses
  double weight = 0;  // divisor of the loss: samples, tokens or their class weights
  int64_t samples = 0;
  std::vector<int64_t> counts;  // metrics that are counts
  std::vector<double> sums;     // metrics that are sums
  std::vector<float> scores;    // for metrics that need every score (AUC): one or more a sample, in shard order
  // samples that do not decode and that the group has not decided to leave out (engine_left_out.cpp), in shard order
  std::vector<int64_t> not_decoded;
};

// Adds `right` to `left`, except for the gradients. The tree adds all small values with this function; tree_sum of
// base/tree.h adds the gradients.
void add(Contribution& left, Contribution&& right);

// Reduces the contributions of all shards of a step to one, whichever worker computed them. The calls of a step are:
// begin; on every lane next_shard and deliver, until next_shard returns nullopt; reduce; reduced.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // The sums of the gradients are written to `gradients`, which are the same tensors in every step, and empty in an
  // evaluation. Every member passes a `control_message`, and receives the leader's message with the result. `mark` is a
  // digest of this worker's state. If the marks of the members differ, next_shard throws an error on every member. Two
  // members compute each shard of `audit`; it is ignored if no other member computes. If the purposes of the members
  // differ, next_shard throws an error on the leader.
  virtual void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
                     std::optional<Mark> mark = std::nullopt, const Audit& audit = {}, const Purpose& purpose = {}) = 0;
  // Returns whether another member computes, so that this worker's mark is compared with that member's.
  virtual bool compares() const { return false; }
  virtual std::optional<ShardTask> next_shard() = 0;  // any thread
  // Any thread. `leaf` is nullopt if the shard has no samples.
  virtual void deliver(ShardIndex shard, std::optional<Contribution> leaf) = 0;
  // Any thread. Delivers the result of a task that is an audit. Only a reducer that gives such tasks implements it.
  virtual void deliver_audit(ShardIndex /*shard*/, std::optional<Contribution> /*leaf*/) {}
  virtual void reduce() = 0;  // one lane calls it, or all lanes in parallel
  // The result except the gradients. `present[p]` is true if at least one shard had a gradient for parameter p.
  struct Reduced {
    Contribution sums;
    std::vector<bool> present;
    std::string control_message;
    bool compare = false;            // see StepResult
    std::vector<std::string> wrong;  // see StepResult
  };
  virtual Reduced reduced() = 0;
  // Called when a lane fails and will not deliver its shard. From then on, no lane of this worker waits in next_shard.
  // Any thread may call it.
  virtual void give_up() {}
  // The seconds for which the lanes together have waited in next_shard for results of other workers.
  virtual double waited_seconds() const { return 0; }
  // What this worker has exchanged with the others so far.
  virtual NetworkUse traffic() const { return {}; }
  // The shares of a step that the members of the group have now, this worker's first; empty without a group.
  virtual std::vector<double> shares() const { return {}; }
  // Predicts whether this worker will compute this shard of a later step. Used only to load samples ahead.
  virtual bool expects(ShardIndex, int64_t /*shards*/) const { return true; }
};

// The reducer of a single process. If the gradients of all shards of a step take more than `held_bytes`, it adds
// siblings while lanes still compute, so that it holds only a few of them. Small gradients are added all at once, which
// is faster. The result has the same bits either way.
inline constexpr int64_t kHeldGradientBytes = 64 << 20;
std::unique_ptr<Reducer> make_local_reducer(int64_t held_bytes = kHeldGradientBytes);

// ---- control log and state -----------------------------------------------------------------------------------------

// These types and functions need no tensors, so loop/ defines them.
using loop::control_kind;
using loop::ControlEntry;
using loop::ControlLog;
using loop::Diverged;
using loop::EvaluationResult;
using loop::EvaluationState;
using loop::MemoryChanged;
using loop::OnWork;
using loop::RunResult;
using loop::ShardFailed;
using loop::SkippedSamples;
using loop::StateFacts;
using loop::StepMessage;
using loop::StepResult;

// Everything that determines the next step. A checkpoint contains it, and so does the snapshot that a joiner receives.
struct TrainingState : loop::State {
  std::vector<model::NamedTensor> parameters;  // float32
  std::vector<model::NamedTensor> buffers;
  std::vector<model::NamedTensor> ema;  // empty without EMA; else one for each parameter
  // under each name, such as "exp_avg": one tensor for each parameter, empty for a frozen one
  std::map<std::string, std::vector<torch::Tensor>> optimizer;
  std::vector<int64_t> optimizer_steps;  // number of updates of each parameter
};

// Returns the XXH3-128 digest of the state: a text of the counts and decisions, then fixed blocks of every tensor, in
// order. The `lanes`, if given, share the work; the digest does not depend on them.
Digest digest(const TrainingState& state, Lanes* lanes = nullptr);

// ---- a run of several members --------------------------------------------------------------------------------------

// Lets a drill change what this worker computes or holds, as a faulty processor or memory would. Null functions change
// nothing.
struct Faults {
  // Called with the gradients of each shard of a step before they are delivered. If `audit`, the shard is computed
  // again, to compare the results. Any thread.
  std::function<void(const Work&, bool audit, std::vector<torch::Tensor>& gradients)> in_shard;
  // Called with the state before each step, and with the sums of all shards' gradients before they are used.
  std::function<void(TrainingState&)> in_state;
  std::function<void(Step, std::vector<torch::Tensor>& sums)> in_sums;
};

// The properties that the workers of a run must share to compute the same numbers.
struct Identity {
  std::string job;      // digest of the resolved job, of the data and of the content of a model file
  std::string machine;  // CPU model and library versions, as text
  std::string probe;    // digest of a shard computed from the initial state
};

// A worker's place in the group of workers that train one run. A call of members() or reducer(), or of the object that
// it returns, may throw an error that ends this worker's membership. distribute/ defines these errors.
class Membership {
 public:
  virtual ~Membership() = default;
  virtual MemberId id() const = 0;  // no other member of the run has had it, and later members have higher ones
  virtual loop::Members& members() = 0;
  virtual Reducer& reducer() = 0;  // adds up the contributions of all members
};

// ---- a run ---------------------------------------------------------------------------------------------------------

struct RunOptions {
  spec::Job job;              // validated
  std::string run_directory;  // exists
  bool resume = false;        // continue from the newest intact checkpoint
  bool ledger = false;
  bool budget_from_first_step = false, experiment = false;  // see loop::RunOptions
  double began_seconds_ago = 0;  // how long the process had been preparing the run before; budget.time includes it
  bool quiet = false;            // true: nothing is shown; the files of the run are written
  report::LogFormat log_format = report::LogFormat::human;
  std::atomic<int>* stop_signals = nullptr;        // above 0 once SIGINT, SIGTERM or SIGHUP asked to stop
  std::atomic<int>* checkpoint_signals = nullptr;  // number of SIGUSR1 received so far
  int64_t workers_here = 1;                        // number of workers that share this machine's cores
  OnWork on_work = nullptr;
  Faults faults;  // for drills
  // The lock of the run directory, if the caller has taken it. Else run() takes it, unless the worker joins others.
  const rundir::RunLock* lock = nullptr;
  // Called once, when this worker can compute, to join the other members. Null if the run has one worker.
  std::function<std::unique_ptr<Membership>(const Identity&)> join = nullptr;
};

// Takes the lock that a worker alone holds while it trains. Throws Error (RUN_IN_USE) if another process holds it.
rundir::RunLock lock_run(const std::string& run_directory);

// Trains the job until its end, a stop or an error. Throws Error for problems that the user can fix.
RunResult run(const RunOptions& options, Disk& disk, Clock& clock);

// Makes every decision of a job that a group of workers must not make one by one, and writes the run's resolved.yaml.
// The workers then train that job. The caller holds the run's lock. Returns an exit code: 0, or that of a run that can
// be resumed if a stop was asked for before. Throws Error as run() does.
int decide(const RunOptions& options, Disk& disk, Clock& clock);

// Describes the model of a job as it is built for the job's data: input, output, every parameter and buffer. Throws
// Error if the model cannot be built.
model::FileReport inspect_job(const spec::Job& job);

// Trains the job for about so many seconds and says what the whole training will take. `run` has the job, an empty
// directory that the caller removes, and its lock. `of_machine`: also measures what this machine can do, for a plan of
// other machines. Throws Error as run() does, and if a signal stops it.
advise::Plan plan_job(const RunOptions& run, double seconds, bool of_machine, Clock& clock);

// What a short run of a job has shown about its speed.
struct MeasuredJob {
  spec::Job job;  // with every auto decided
  advise::Record record;
  double samples_per_second = 0;  // between the first step and the end of the last one
};
// Trains the job for about so many seconds; the rest as for plan_job(). `operators`: also looks into a step, if that
// does not take longer.
MeasuredJob measure_job(const RunOptions& run, double seconds, bool operators, Clock& clock);
// Trains the job until an experiment is made (base/experiment.h), at most about so many seconds; empty if the time
// did not suffice. The rest as for plan_job().
std::vector<ConditionTime> experiment_with(const RunOptions& run, double seconds, Clock& clock);

// ---- the learning rate ---------------------------------------------------------------------------------------------

// A range test (Smith 2017, "Cyclical learning rates for training neural networks"): a training whose learning rate
// grows exponentially, step by step.
struct RateRange {
  double lowest = 1e-8, highest = 1;
  int64_t steps = 100;
};
struct RatePoint {
  double lr = 0, loss = 0;  // the loss of the step's samples before the step
  bool operator==(const RatePoint&) const = default;
};
// What the losses of a range test say.
struct RateFinding {
  double suggestion = 0;  // where the smoothed loss falls fastest, with two digits
  std::vector<RatePoint> points;
  std::vector<double> smoothed;  // one for each point
  bool diverged = false;         // true: the test ended early, because the loss had grown too much
  double job_lr = 0;             // optimizer.lr of the job
};
// Trains the job's model from its beginning, in memory, without its schedule. Nothing is written. The same job gives
// the same finding on any number of lanes. Throws Error (LR_NOT_FOUND) if the loss does not fall.
RateFinding find_rate(const spec::Job& job, const RateRange& range);

// Opens the data set of a job, of any format.
std::unique_ptr<data::Dataset> open_data(const spec::Job& job);

// ---- using a trained model -----------------------------------------------------------------------------------------

// Weights on disk, and the job that trained them.
struct Trained {
  std::string weights;        // model.safetensors, or the directory of a checkpoint
  bool checkpoint = false;    // true: `weights` is a checkpoint; its averaged weights are used if it has them
  std::string run_directory;  // given by the user, or the run that contains the weights; empty if there is none
  bool run_given = false;     // true: the user named the run itself
  std::string job_yaml;       // the job as it was resolved when training began
  // What model.json says about the training data; nullopt if it says nothing.
  std::optional<data::DataInfo> data;
  std::string description;      // a sentence that says which weights these are
  std::optional<int64_t> step;  // of a checkpoint
  // Two classes: the score of the second one from which a sample counts as one of it. The job may give it, too.
  std::optional<double> threshold = {};
  std::string remark = {};  // for the user, if the files could not be checked for damage; else empty
};
// Finds the weights at `path`: a run, a model directory, or the directory of a checkpoint. From a run it takes the
// model, or, if training has not ended, the newest intact checkpoint. Throws Error if `path` is something else or
// damaged. The functions below that use the weights throw Error if the weights themselves are damaged.
Trained find_trained(const std::string& path, Disk& disk);

using report::ClassQuality;

// The result of an evaluation. It uses the same shards and the same tree as the evaluations of training, so the same
// state gives the same bits on the same kind of machine. If the job names separate files for the split, evaluate() does
// not open the training data. Otherwise it opens the job's data. It throws Error if the classes, columns or
// normalisation of that data differ from those that the model stores.
struct Evaluation {
  report::Metrics metrics;
  std::vector<ClassQuality> by_class;  // one for each class; empty if there is no confusion matrix
  std::vector<int64_t> confusion;      // [classes * classes], rows by true class; empty if it was not counted
  std::vector<report::ThresholdCounts> thresholds;  // only for two classes
  std::vector<std::string> class_names;
  int64_t classes = 0, samples = 0;
  int64_t skipped = 0;                     // samples that could not be decoded (data.on_corrupt: skip)
  std::vector<std::string> skipped_names;  // the first skipped samples, each with the reason
  std::vector<std::string> notes;          // what the user should know about the files of the samples
  std::optional<double> threshold = {};    // the probability of the second class that decided; nullopt: 0.5
};
Evaluation evaluate(const Trained& trained, const spec::Job& job, data::Split split, Disk& disk);

constexpr int32_t kNoClass = -1;  // the sample's outputs are not finite, so no class is the most likely

// One prediction for each sample of `samples`, in order. Next-token models predict the token after each window.
struct Predictions {
  std::unique_ptr<data::Dataset> samples;  // its split `test` holds the samples and their names
  std::vector<bool> decoded;               // false: the sample could not be decoded (data.on_corrupt: skip)
  std::vector<int32_t> classes;            // class by the threshold, or most likely, or kNoClass; empty for regression
  std::vector<float> probabilities;        // probability of that class: softmax, or the sigmoid under loss bce
  std::vector<double> numbers;             // regression: [samples * width], in the target's own units
  int64_t width = 1;
  std::string first_skipped;
};
Predictions predict(const Trained& trained, const spec::Job& job, const std::string& data, Disk& disk);

// How a text model continues a prompt.
struct Generation {
  std::string prompt;
  int64_t max_tokens = 200;  // tokens to make
  double temperature = 1;    // 0: always the most likely token; above 1: more variety
  int64_t top_k = 0;         // draw among so many of the most likely tokens; 0: among all
  uint64_t seed = 0;         // the same seed gives the same text
};
// Returns the text that follows the prompt. The model reads at most the last data.text.window tokens. Throws Error as
// predict() does, and if the model is not one of text.
std::string generate(const Trained& trained, const spec::Job& job, const Generation& options, Disk& disk);

// The probability of log odds, such as those of a threshold.
double probability_of(double log_odds);

// A trained model in memory, for a program that uses it in its own way.
struct LoadedModel {
  spec::Job job;        // every auto is resolved
  data::DataInfo data;  // of the training data
  int64_t outputs = 0;  // numbers that the model computes for each sample (or token); 0: its loss
  // Two classes: the log odds of the second one from which a sample counts as one of it; nullopt: 0.
  std::optional<double> threshold = {};
  // In evaluation mode, in float32, with the weights that predict() uses: the averaged ones if there are any.
  std::unique_ptr<model::Model> model;
};
// Throws Error as predict() does. The model of a job with a model file comes from that file.
LoadedModel load_model(const Trained& trained, const spec::Job& job, Disk& disk);

// ---- checking a job ------------------------------------------------------------------------------------------------

// The finding of one check of `sinew check`. `warn` deserves attention but does not fail the job. `skip` means that the
// check was not made, for example because no time was left; `what` says why.
struct SanityFinding {
  enum class Verdict { pass, warn, fail, skip };
  std::string check;  // such as "one_batch"; the names are stable (sanity_checks)
  Verdict verdict = Verdict::pass;
  std::string what;    // one line with figures
  std::string cause;   // a name for programs, such as "learning_rate_too_large"; empty unless warn or fail
  std::string likely;  // the cause as a sentence
  std::string hint;    // what to try
  double seconds = 0;
};
std::string to_string(SanityFinding::Verdict verdict);

struct SanityOptions {
  spec::Job job;  // validated; check_sanity resolves its autos
  const data::Dataset* dataset = nullptr;
  // Builds the model instead of job.model, if set. Returns an equal model at every call.
  std::function<std::unique_ptr<model::Model>()> make_model = nullptr;
  double seconds = 25;  // for all checks together; a check that finds no time left is skipped
  std::function<void(const SanityFinding&)> on_finding = nullptr;  // called as each check ends
};

// Checks data, model and training with short trials; saves nothing. Throws Error if the job itself cannot be resolved.
std::vector<SanityFinding> check_sanity(const SanityOptions& options, Clock& clock);

struct SanityCheckInfo {
  std::string name, help;
};
std::vector<SanityCheckInfo> sanity_checks();

std::string finding_text(const SanityFinding& finding);  // one line, or more with the likely cause and the hint
std::string findings_summary(const std::vector<SanityFinding>& findings, double seconds);  // the last line
std::string findings_json(const std::string& job, const std::vector<SanityFinding>& findings);
bool all_sane(const std::vector<SanityFinding>& findings);  // no check failed

}  // namespace sinew::train
