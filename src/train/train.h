// Training: a step is a fixed list of shards; who computes them does not matter.
//
// For worker/ (runs) and distribute/ (implements Reducer over members). A step reads the state at t and the samples and
// random keys of (t, shard), adds the shards' sums in a fixed tree over shard indices, divides once by the step's total
// weight, and commits: parameters, optimizer state, buffers and cursor at t+1. Nothing here depends on how many lanes
// there are, on time or on the order of arrival. Types belong to one thread unless they say otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/slate.h"
#include "base/tree.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "model/model.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::train {

class Lanes;

// ---- what shards add up --------------------------------------------------------------------------------------------

// The sums of one shard (a leaf) or of a set of shards (a node). Sums, never means: the root divides once.
struct Contribution {
  std::vector<torch::Tensor> gradients;  // by parameter, float32, in the parameter's memory order; undefined: absent
  std::vector<torch::Tensor> buffers;    // by buffer: float64 sum of samples * delta, or an integer's equal delta
  double loss = 0;                       // sum of weighted losses
  double weight = 0;                     // what the loss is divided by: samples, tokens or their class weights
  int64_t samples = 0;
  std::vector<int64_t> counts;  // metrics that count
  std::vector<double> sums;     // metrics that add
  std::vector<float> scores;    // metrics that gather (AUC): one or more a sample, in shard order
};

// left + right over everything but gradients (those: tree_sum of base/tree.h); the tree's only arithmetic on small
// things.
void add(Contribution& left, Contribution&& right);

// How one step's contributions become one, wherever they were computed. One object a run; a step is
// begin, then from every lane next_shard/deliver until it says no, then reduce, then root.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // `gradients`: where the sums of the root are to be written; same memory for every step. `note`: what whoever decides
  // for the run says with this step (control entries); the root brings it to everyone.
  virtual void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string note) = 0;
  virtual std::optional<ShardIndex> next_shard() = 0;                            // any thread
  virtual void deliver(ShardIndex shard, std::optional<Contribution> leaf) = 0;  // any thread; nullopt: empty shard
  virtual void reduce() = 0;                                                     // one lane or all, side by side
  // Everything but gradients summed; `present[p]`: some shard had a gradient for parameter p.
  struct Root {
    Contribution sums;
    std::vector<bool> present;
    std::string note;
  };
  virtual Root root() = 0;
  // A lane failed and its shard will never be delivered: next_shard makes nobody here wait for it. Any thread.
  virtual void give_up() {}
  // Will this shard of a coming step be computed here, as far as can be told? A hint for loading ahead.
  virtual bool expects(ShardIndex, int64_t /*shards*/) const { return true; }
};

std::unique_ptr<Reducer> make_local_reducer();

// Told by each lane as it begins something; any thread. What it throws fails the shard.
using OnWork = std::function<void(int lane, const Work& work)>;

// ---- control log ---------------------------------------------------------------------------------------------------

// An impure input (a signal, a clock, a person) that changes what happens, at a step nobody may have started.
struct ControlEntry {
  enum class Kind { stop, checkpoint, evaluate, learning_rate, batch_size };
  Step effective;
  Kind kind = Kind::stop;
  double value = 0;     // learning_rate: factor on the schedule; batch_size: samples; stop: exit code
  std::string reason;   // a sentence
  bool done = false;    // obeyed in this state: a resume does not do it again
  int64_t request = 0;  // its number among the requests of people in this attempt; 0: none of theirs
};
std::string to_string(ControlEntry::Kind kind);
std::optional<ControlEntry::Kind> control_kind(std::string_view name);

// Entries as text (JSON): what a step's note carries, and checkpoints.
std::string entries_json(const std::vector<ControlEntry>& entries);
std::vector<ControlEntry> entries_of_json(const std::string& text);  // throws Error for what is none

class ControlLog {
 public:
  void append(ControlEntry entry);
  const std::vector<ControlEntry>& entries() const { return entries_; }
  int64_t newest_request() const;  // 0: none
  // The entries of this step that were not obeyed yet; from now on they are. Stops apart.
  std::vector<ControlEntry> obey(Step step);
  // The stop of this step. It is never marked: whoever takes the state at this boundary is to stop here too.
  std::optional<ControlEntry> stop_at(Step step) const;
  double learning_rate_factor(Step step) const;  // 1 when never changed
  int64_t batch_size(Step step, int64_t from_job) const;
  bool changes_batch_size() const;
  // A stop ends an attempt, not the run: those that took effect at or after the step we go on from are void. So are
  // evaluations that this step was saved before: made now, they would give a saved step a second digest.
  void resume_at(Step step);
  // Only what changes the numbers of a step (learning_rate, batch_size) belongs to the digest: stopping, evaluating and
  // saving leave the model as it was, and a run that was stopped and resumed is the run that was not.
  std::string digest_text(Step up_to) const;

 private:
  std::vector<ControlEntry> entries_;
};

// ---- state ---------------------------------------------------------------------------------------------------------

// How evaluation went so far: what early stopping, best checkpoints and the objective decide from.
struct EvaluationState {
  std::string monitor;  // the metric `best` is of; empty: none yet, or a checkpoint of a version that did not say
  std::optional<double> best;  // of checkpoint.monitor
  Step best_step;
  std::vector<Step> best_steps;         // those that were the best when they were reached, the newest last; not all
  std::optional<double> patience_best;  // of early_stopping.monitor; where that is the same metric, `best` again
  Step patience_step;
  int64_t without_improvement = 0;
  report::Metrics last;  // newest evaluation
  bool objective_met = false;
  std::string stop;  // why training is over; empty: it goes on
};

// Everything a step is a function of. A checkpoint is this; so is what a joiner is given.
struct TrainingState {
  Step step;
  data::Cursor cursor;
  int64_t samples = 0, tokens = 0;  // committed since step 0
  uint64_t seed = 0;
  std::vector<model::NamedTensor> parameters;  // float32
  std::vector<model::NamedTensor> buffers;
  std::vector<model::NamedTensor> ema;                          // empty without EMA; else one a parameter
  std::map<std::string, std::vector<torch::Tensor>> optimizer;  // "exp_avg" -> one a parameter; frozen: empty
  std::vector<int64_t> optimizer_steps;                         // updates of each parameter
  ControlLog control;
  EvaluationState evaluation;
};

// XXH3-128 over fixed blocks of every tensor in order and over a canonical text of the rest. `lanes`: idle ones that
// may share the work; the digest does not depend on them.
Digest digest(const TrainingState& state, Lanes* lanes = nullptr);

// ---- a run among others --------------------------------------------------------------------------------------------

// What a worker must share with the others of its run to compute the same numbers.
struct Identity {
  std::string job;      // digest of the resolved job, of the data and of what a model file holds
  std::string machine;  // CPU model and library versions, in words
  std::string probe;    // digest of a shard computed from the initial state
};

// The others, as a run sees them. Calls belong to the step thread unless they say otherwise; each may throw what ends
// this life of the worker (distribute/ says what).
class Members {
 public:
  virtual ~Members() = default;
  virtual Reducer& reducer() = 0;
  // The one that writes the run's files and decides what goes into the control log. Changes only by a death.
  virtual bool lead() const = 0;
  virtual bool others() const = 0;     // somebody else computes too
  virtual bool alone() const = 0;      // nobody else computes or is about to
  virtual bool may_write() const = 0;  // any thread: this member is surely still the lead
  // The state to begin from; nullopt: all begin alike, from the newest checkpoint or step 0. Blocks, bounded.
  virtual std::optional<checkpoint::Loaded> take_state() = 0;
  virtual void begin(Step step, Digest origin) = 0;  // the state stands at this step and has this digest: rounds begin
  // At each step boundary; `take` makes one copy of the state, if somebody who joins waits for one.
  virtual void boundary(const TrainingState& state, const std::function<checkpoint::OwnedSnapshot()>& take) = 0;
  // Of people, with their numbers; none that the state had in its control log at the last boundary. The lead's.
  virtual std::vector<ControlEntry> requests() = 0;
  virtual void tell(std::optional<Step> durable, const std::string& facts_json) = 0;  // the lead's, for those who watch
  // This worker is to go: its work moves to the others, or to those who join once they compute.
  virtual void leave() = 0;
  virtual void check() const = 0;  // throws when this worker's life in the group is over: others went on without it
  virtual void finished(int exit_code) = 0;  // the lead: all is written, the run is over for everyone
  // Another member than the lead, at the end of training: the exit code once the lead said it; nullopt: the lead is
  // gone and this member is it now. Blocks as long as the lead lives.
  virtual std::optional<int> wait_for_end() = 0;
};

// ---- a run ---------------------------------------------------------------------------------------------------------

struct RunOptions {
  spec::Job job;              // validated
  std::string run_directory;  // exists
  bool resume = false;        // continue from the newest intact checkpoint
  bool ledger = false;
  report::LogFormat log_format = report::LogFormat::human;
  std::atomic<int>* stop_signals = nullptr;        // number of SIGINT/SIGTERM so far
  std::atomic<int>* checkpoint_signals = nullptr;  // number of SIGUSR1 so far
  int64_t workers_here = 1;                        // how many share this machine's cores
  OnWork on_work = nullptr;
  // Among others: called once, when this worker can compute. Null: alone.
  std::function<std::unique_ptr<Members>(const Identity&)> join = nullptr;
};

struct RunResult {
  int exit_code = 0;
  Step step;
  Digest digest;
  report::Metrics last;
};

// Trains from the job to the end, a stop or an error. Throws Error for what the user can fix.
RunResult run(const RunOptions& options, Disk& disk, Clock& clock);

// The model of a job as it is built for its data: what it takes and gives, every parameter and buffer. Throws Error
// where it can not be built.
model::FileReport inspect_job(const spec::Job& job);

// The data set of a job, whatever it comes from.
std::unique_ptr<data::Dataset> open_data(const spec::Job& job);

// ---- using a trained model -----------------------------------------------------------------------------------------

// Weights on disk, with the job they were trained by.
struct Trained {
  std::string weights;                 // model.safetensors, or the directory of a checkpoint
  bool checkpoint = false;             // weights is one: averaged ones are taken where it has them
  std::string run_directory;           // given or around it; empty: none
  bool run_given = false;              // the user named the run itself
  std::string job_yaml;                // as resolved when training began
  std::optional<data::DataInfo> data;  // what the model remembers of its data; nullopt: only the data itself can tell
  std::string said;                    // a sentence on which weights these are
};
// `path`: a run (its model; where training did not end, its newest intact checkpoint), a model directory or a
// checkpoint's directory. Throws Error for what is neither, and for damage.
Trained find_trained(const std::string& path, Disk& disk);

// As training evaluates: same shards, same tree, so the same bits for the same state on the same kind of machine.
// A part that names files of its own is opened without the training data; else the job's data is opened anew, and
// refused if it is not prepared as the model remembers.
struct Evaluation {
  report::Metrics metrics;
  std::vector<int64_t> confusion;  // [classes * classes], row: truth; empty if none
  std::vector<std::string> class_names;
  int64_t classes = 0, samples = 0;
  int64_t skipped = 0;                     // samples whose bytes do not decode (data.on_corrupt: skip)
  std::vector<std::string> skipped_names;  // the first of them, and why
};
Evaluation evaluate(const Trained& trained, const spec::Job& job, data::Part part, Disk& disk);

// One prediction a sample of `samples`, in order. Next-token models predict what follows each window.
struct Predictions {
  std::unique_ptr<data::Dataset> samples;  // its part test; names them
  std::vector<bool> made;                  // false: the sample's bytes do not decode (data.on_corrupt: skip)
  std::vector<int32_t> classes;            // most likely one; empty for regression
  std::vector<float> probabilities;        // of that class: softmax, or the sigmoid under loss bce
  std::vector<double> numbers;             // regression: [samples * width], in the target's own units
  int64_t width = 1;
  std::string first_skipped;
};
Predictions predict(const Trained& trained, const spec::Job& job, const std::string& data, Disk& disk);

// ---- is this job sane? ---------------------------------------------------------------------------------------------

// What one check of `sinew check` found. `warn` is worth a look and no reason to stop; `skip` is not judged, `what`
// says why: running out of time never fails a job.
struct SanityFinding {
  enum class Verdict { pass, warn, fail, skip };
  std::string check;  // "one_batch"; the names are promised (sanity_checks)
  Verdict verdict = Verdict::pass;
  std::string what;    // one line with figures
  std::string cause;   // a word for programs, "learning_rate_too_large"; empty unless warn or fail
  std::string likely;  // the cause as a sentence
  std::string hint;    // what to try
  double seconds = 0;
};
std::string to_string(SanityFinding::Verdict verdict);

struct SanityOptions {
  spec::Job job;  // validated; autos are resolved here
  const data::Dataset* dataset = nullptr;
  std::function<std::unique_ptr<model::Model>()> make_model = nullptr;  // else job.model's; equal at every call
  double seconds = 25;  // for all checks; one that finds no time left is skipped
  std::function<void(const SanityFinding&)> on_finding = nullptr;  // as each check ends
};

// Judges data, model and training by short trials; saves nothing. Throws Error where the job itself can not be
// resolved.
std::vector<SanityFinding> check_sanity(const SanityOptions& options, Clock& clock);

struct SanityCheckInfo {
  std::string name, help;
};
std::vector<SanityCheckInfo> sanity_checks();

std::string finding_text(const SanityFinding& finding);  // one line, three when there is something to do
std::string findings_summary(const std::vector<SanityFinding>& findings, double seconds);  // the last line
std::string findings_json(const std::string& job, const std::vector<SanityFinding>& findings);
bool all_sane(const std::vector<SanityFinding>& findings);  // no check failed

}  // namespace sinew::train
