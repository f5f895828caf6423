// Training: a step is a fixed list of shards, and its result does not depend on which worker computes which shard.
//
// Used by worker/, which runs it, and by distribute/, which implements Reducer over several members. A step reads the
// state at t and, for each shard, the samples and random keys of (t, shard). It adds the shards' sums in a fixed tree
// over shard indices, divides once by the step's total weight, and commits parameters, optimizer state, buffers and
// cursor at t+1. The result does not depend on the number of lanes, on time or on the order of arrival. A type belongs
// to one thread unless its comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/activity_board.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/tree.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "model/model.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::train {

class Lanes;

// ---- contributions and their reduction -----------------------------------------------------------------------------

// The sums of one shard (a leaf of the tree) or of a set of shards (a node). These are sums and never means; the
// reduced result is divided once.
struct Contribution {
  std::vector<torch::Tensor> gradients;  // by parameter, float32, in the parameter's memory order; undefined: absent
  // by buffer: float64 sum of samples * delta, or the delta of an integer buffer, equal in all shards
  std::vector<torch::Tensor> buffers;
  double loss = 0;    // sum of weighted losses
  double weight = 0;  // divisor of the loss: samples, tokens or their class weights
  int64_t samples = 0;
  std::vector<int64_t> counts;  // metrics that are counts
  std::vector<double> sums;     // metrics that are sums
  std::vector<float> scores;    // metrics that need every score (AUC): one or more for each sample, in shard order
};

// Adds `right` to `left`, except the gradients, which tree_sum of base/tree.h adds. The tree adds all small values with
// this function.
void add(Contribution& left, Contribution&& right);

// Reduces the contributions of one step to one, wherever they were computed. A run has one reducer. A step calls begin,
// then next_shard and deliver on every lane until next_shard returns nullopt, then reduce, then reduced.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // `gradients`: the memory for the summed gradients, the same for every step. `control_message`: the leader's control
  // message for this step (control entries); every member receives it with the result.
  virtual void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message) = 0;
  virtual std::optional<ShardIndex> next_shard() = 0;  // any thread
  // any thread; nullopt: the shard has no samples
  virtual void deliver(ShardIndex shard, std::optional<Contribution> leaf) = 0;
  virtual void reduce() = 0;  // one lane, or all lanes in parallel
  // Everything except the gradients. `present[p]`: at least one shard had a gradient for parameter p.
  struct Reduced {
    Contribution sums;
    std::vector<bool> present;
    std::string control_message;
  };
  virtual Reduced reduced() = 0;
  // A lane failed and will not deliver its shard. From now on next_shard makes no lane of this worker wait for it. Any
  // thread.
  virtual void give_up() {}
  // Predicts whether this worker will compute this shard of a coming step. A hint for loading samples ahead.
  virtual bool expects(ShardIndex, int64_t /*shards*/) const { return true; }
};

std::unique_ptr<Reducer> make_local_reducer();

// Each lane calls it when it begins some work; any thread. An exception from it fails the shard.
using OnWork = std::function<void(int lane, const Work& work)>;

// ---- control log ---------------------------------------------------------------------------------------------------

// An input from outside the training state (a signal, the clock, a user) that changes the training. It takes effect at
// a step that no member has started yet.
struct ControlEntry {
  enum class Kind { stop, checkpoint, evaluate, learning_rate, batch_size };
  Step effective;
  Kind kind = Kind::stop;
  double value = 0;     // learning_rate: factor on the schedule; batch_size: samples; stop: exit code
  std::string reason;   // a sentence
  bool done = false;    // applied in this state: a resume does not apply it again
  int64_t request = 0;  // number among the requests of users in this attempt; 0: not a user's request
};
std::string to_string(ControlEntry::Kind kind);
std::optional<ControlEntry::Kind> control_kind(std::string_view name);

// Entries as JSON text, for the control messages of steps and for checkpoints.
std::string entries_json(const std::vector<ControlEntry>& entries);
std::vector<ControlEntry> entries_of_json(const std::string& text);  // throws Error if `text` is no list of entries

class ControlLog {
 public:
  void append(ControlEntry entry);
  const std::vector<ControlEntry>& entries() const { return entries_; }
  int64_t newest_request() const;  // 0: none
  // Returns the entries of this step that were not applied yet, except stops, and marks them applied.
  std::vector<ControlEntry> apply(Step step);
  // The stop entry of this step. It is never marked, because a member that receives the state at this boundary must
  // stop here too.
  std::optional<ControlEntry> stop_at(Step step) const;
  double learning_rate_factor(Step step) const;  // 1 unless an entry changed it
  int64_t batch_size(Step step, int64_t from_job) const;
  bool changes_batch_size() const;
  // Removes the entries that a resume at `step` must not repeat. A stop ends an attempt and not the run, so stops at or
  // after `step` go. Evaluations at or after `step` that were not made go too: `step` was saved before them, and making
  // one now would give a saved step a second digest.
  void resume_at(Step step);
  // The digest covers only entries that change the numbers of a step (learning_rate, batch_size). Stopping, evaluating
  // and saving leave the model unchanged, so a run that was stopped and resumed has the same digests as one that was
  // not.
  std::string digest_text(Step up_to) const;

 private:
  std::vector<ControlEntry> entries_;
};

// ---- state ---------------------------------------------------------------------------------------------------------

// The history of evaluations, from which early stopping, best checkpoints and the objective are decided.
struct EvaluationState {
  // The metric of `best`; empty: no evaluation yet, or a checkpoint of an older version, which did not save it.
  std::string monitor;
  std::optional<double> best;  // best value of checkpoint.monitor
  Step best_step;
  std::vector<Step> best_steps;  // steps that were the best when they were reached, newest last; old ones are dropped
  // best value of early_stopping.monitor; equal to `best` if both monitors are the same metric
  std::optional<double> patience_best;
  Step patience_step;
  int64_t without_improvement = 0;
  report::Metrics last;  // metrics of the newest evaluation
  bool objective_met = false;
  std::string stop;  // why training ends; empty: it continues
};

// Everything that determines the next step. A checkpoint contains it, and so does the snapshot that a joiner receives.
struct TrainingState {
  Step step;
  data::Cursor cursor;
  int64_t samples = 0, tokens = 0;  // committed since step 0
  uint64_t seed = 0;
  std::vector<model::NamedTensor> parameters;  // float32
  std::vector<model::NamedTensor> buffers;
  std::vector<model::NamedTensor> ema;  // empty without EMA; else one for each parameter
  // "exp_avg" -> one tensor for each parameter; frozen: empty
  std::map<std::string, std::vector<torch::Tensor>> optimizer;
  std::vector<int64_t> optimizer_steps;  // number of updates of each parameter
  ControlLog control;
  EvaluationState evaluation;
};

// XXH3-128 over fixed blocks of every tensor in order and over a canonical text of the rest. Idle `lanes` may share the
// work; the digest does not depend on them.
Digest digest(const TrainingState& state, Lanes* lanes = nullptr);

// ---- a run of several members --------------------------------------------------------------------------------------

// The properties that the workers of a run must share to compute the same numbers.
struct Identity {
  std::string job;      // digest of the resolved job, of the data and of the content of a model file
  std::string machine;  // CPU model and library versions, as text
  std::string probe;    // digest of a shard computed from the initial state
};

// The group of workers that train one run, from the point of view of one of them. Calls belong to the step thread
// unless a comment says otherwise. Each call may throw an error that ends this worker's membership; distribute/ defines
// them.
class Members {
 public:
  virtual ~Members() = default;
  virtual Reducer& reducer() = 0;
  // Whether this member is the leader, which writes the run's files and decides what enters the control log. The leader
  // changes only when it dies.
  virtual bool is_leader() const = 0;
  virtual bool has_peers() const = 0;  // another member computes too
  virtual bool is_alone() const = 0;   // no other member computes or is about to
  virtual bool may_write() const = 0;  // any thread: this member is certainly still the leader
  // Returns the state to begin from. nullopt: all members begin from the newest checkpoint or from step 0. Blocks for a
  // bounded time.
  virtual std::optional<checkpoint::Loaded> take_state() = 0;
  // Starts the collectives. The state is at this step and has this digest.
  virtual void begin(Step step, Digest origin) = 0;
  // Called at each step boundary. `take` makes one copy of the state, if a joiner waits for one.
  virtual void boundary(const TrainingState& state, const std::function<checkpoint::OwnedSnapshot()>& take) = 0;
  // The requests of users, with their numbers, except those that were in the state's control log at the last boundary.
  // Only the leader calls it.
  virtual std::vector<ControlEntry> requests() = 0;
  // Publishes the leader's status for users. Only the leader calls it.
  virtual void report(std::optional<Step> durable, const std::string& facts_json) = 0;
  // This worker wants to leave. Its work moves to the other members, or to joiners once they compute.
  virtual void leave() = 0;
  virtual void check_membership() const = 0;  // throws if the others have continued without this worker
  // called by the leader: everything is written, and the run is over for all members
  virtual void finished(int exit_code) = 0;
  // Called at the end of training by a member that is not the leader. Returns the exit code that the leader announced,
  // or nullopt if the leader died and this member is now the leader. Blocks as long as the leader lives.
  virtual std::optional<int> wait_for_end() = 0;
};

// ---- a run ---------------------------------------------------------------------------------------------------------

struct RunOptions {
  spec::Job job;              // validated
  std::string run_directory;  // exists
  bool resume = false;        // continue from the newest intact checkpoint
  bool ledger = false;
  report::LogFormat log_format = report::LogFormat::human;
  std::atomic<int>* stop_signals = nullptr;        // number of SIGINT/SIGTERM received so far
  std::atomic<int>* checkpoint_signals = nullptr;  // number of SIGUSR1 received so far
  int64_t workers_here = 1;                        // number of workers that share this machine's cores
  OnWork on_work = nullptr;
  // Called once, when this worker can compute, to join the other members. Null: the run has one worker.
  std::function<std::unique_ptr<Members>(const Identity&)> join = nullptr;
};

struct RunResult {
  int exit_code = 0;
  Step step;
  Digest digest;
  report::Metrics last;
};

// Trains the job until its end, a stop or an error. Throws Error for problems that the user can fix.
RunResult run(const RunOptions& options, Disk& disk, Clock& clock);

// Describes the model of a job as it is built for its data: input, output, every parameter and buffer. Throws Error if
// it cannot be built.
model::FileReport inspect_job(const spec::Job& job);

// Opens the data set of a job, of any format.
std::unique_ptr<data::Dataset> open_data(const spec::Job& job);

// ---- using a trained model -----------------------------------------------------------------------------------------

// Weights on disk, and the job that trained them.
struct Trained {
  std::string weights;        // model.safetensors, or the directory of a checkpoint
  bool checkpoint = false;    // `weights` is a checkpoint; its averaged weights are used if it has them
  std::string run_directory;  // given by the user, or the run that contains the weights; empty: none
  bool run_given = false;     // the user named the run itself
  std::string job_yaml;       // the job as it was resolved when training began
  // what the model file stores about its data; nullopt: it must be read from the data
  std::optional<data::DataInfo> data;
  std::string description;  // a sentence that says which weights these are
};
// `path`: a run (its model, or its newest intact checkpoint if training has not ended), a model directory, or the
// directory of a checkpoint. Throws Error for anything else and for damage.
Trained find_trained(const std::string& path, Disk& disk);

// The result of an evaluation. It uses the same shards and the same tree as the evaluations of training, so the same
// state gives the same bits on the same kind of machine. If the job names separate files for the split, the training
// data is not opened. Otherwise the job's data is opened again, and refused if it would be prepared differently from
// what the model stores.
struct Evaluation {
  report::Metrics metrics;
  std::vector<int64_t> confusion;  // [classes * classes], row: truth; empty if none
  std::vector<std::string> class_names;
  int64_t classes = 0, samples = 0;
  int64_t skipped = 0;                     // samples that could not be decoded (data.on_corrupt: skip)
  std::vector<std::string> skipped_names;  // the first of them, each with its reason
};
Evaluation evaluate(const Trained& trained, const spec::Job& job, data::Split split, Disk& disk);

// One prediction for each sample of `samples`, in order. Next-token models predict the token after each window.
struct Predictions {
  std::unique_ptr<data::Dataset> samples;  // its split `test` holds the samples and their names
  std::vector<bool> decoded;               // false: the sample could not be decoded (data.on_corrupt: skip)
  std::vector<int32_t> classes;            // most likely class; empty for regression
  std::vector<float> probabilities;        // probability of that class: softmax, or the sigmoid under loss bce
  std::vector<double> numbers;             // regression: [samples * width], in the target's own units
  int64_t width = 1;
  std::string first_skipped;
};
Predictions predict(const Trained& trained, const spec::Job& job, const std::string& data, Disk& disk);

// ---- checking a job ------------------------------------------------------------------------------------------------

// The finding of one check of `sinew check`. `warn` deserves a look but does not fail the job. `skip` means not judged,
// and `what` says why: running out of time never fails a job.
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
  // Replaces job.model's; returns an equal model at every call.
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

std::string finding_text(const SanityFinding& finding);  // one line, or three if there is something to do
std::string findings_summary(const std::vector<SanityFinding>& findings, double seconds);  // the last line
std::string findings_json(const std::string& job, const std::vector<SanityFinding>& findings);
bool all_sane(const std::vector<SanityFinding>& findings);  // no check failed

}  // namespace sinew::train
