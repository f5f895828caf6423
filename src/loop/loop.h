// The loop of a training run: control entries, one step, and what is due after it.
//
// The loop decides when a step, an evaluation, a checkpoint or a line of metrics is due. It also decides what a signal,
// the clock or a user's request means, and how a run begins and ends. It knows no tensors: a Trainer computes the
// steps. train/ implements Trainer with its engine, and tests/sim with numbers. A simulation therefore runs this loop
// and not a copy of it.
//
// Only the loop reads the clock, signals and requests of users. Each of these becomes an entry of the control log,
// which travels with the current step and takes effect at the next one. The entries, evaluations and steps are
// therefore a function of the state. All calls of Trainer and Members come from the thread that called run(), unless a
// comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/activity_board.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/experiment.h"
#include "base/going_back.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/stage_timer.h"
#include "base/write_fence.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "loop/control.h"
#include "loop/group_members.h"
#include "loop/members.h"
#include "loop/pace.h"
#include "loop/schedule.h"
#include "loop/state.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::loop {

// ---- what a trainer computes ---------------------------------------------------------------------------------------

// Samples that were skipped because they could not be decoded.
struct SkippedSamples {
  static constexpr size_t kNamed = 5;
  int64_t count = 0;
  std::vector<std::string> names;  // the first kNamed of them, each with its reason
};

struct StepResult {
  double loss = 0;  // the mean loss of the step
  double loss_sum = 0, weight = 0;
  double learning_rate = 0;  // the leader's learning rate
  int64_t samples = 0, seen = 0, correct = 0;
  double grad_norm = -1;              // before clipping; -1 if neither clipping nor want_norm needed it
  SkippedSamples skipped;             // corrupt samples that this worker skipped
  std::vector<ControlEntry> entries;  // the leader's entries; they take effect at the next step
  bool compare = false;               // true: the members must compare their whole states after this step
  // Sentences about workers that computed a wrong result in this step. They were fenced before the step was committed.
  std::vector<std::string> wrong;
  SkippedSamples left_out;  // samples that all members leave out from this step on, because they do not decode
  std::vector<std::string> damaged_copies;  // sentences about samples that do not decode for only one of the workers
};

struct EvaluationResult {
  report::Metrics metrics;                               // "loss", "accuracy", ...
  std::vector<int64_t> confusion;                        // [classes * classes]
  std::vector<report::ThresholdCounts> thresholds = {};  // only for two classes
  std::optional<double> threshold = {};                  // see report::EvaluationRecord
  int64_t samples = 0;
  SkippedSamples skipped;               // the corrupt samples that this worker skipped
  std::vector<std::string> wrong = {};  // see StepResult
  SkippedSamples left_out = {};
  std::vector<std::string> damaged_copies = {};
};

// This worker could not compute a shard of a step or of an evaluation. The message says which and why.
struct ShardFailed : Error {
  using Error::Error;
};

// The step cannot be committed, because its loss or its gradient is not finite, or its shards contradict one another.
// All members find that out in the same way. The state is still the one before the step.
struct Diverged : Error {
  using Error::Error;
};

// Memory of this worker's state changed although no step changed it, or this worker computed a shard twice with
// different results. The state may be wrong, and so may be all that was computed since the error.
struct MemoryChanged : Error {
  explicit MemoryChanged(const std::string& what);
};

// An evaluation ended early, because its time was over.
struct OutOfTime {};

// Computes for the loop, and owns the whole training state.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // The part of the state that is not tensors. step() advances its step, cursor and counts; the loop changes the rest.
  virtual State& state() = 0;
  virtual int64_t batch_size(Step step) const = 0;  // from the job and the control log
  // Commits one step. Every member passes its control message; the step uses that of the leader. With `want_norm`,
  // returns the gradient's norm even if nothing is clipped. Throws Diverged or ShardFailed, and Error if the leader's
  // message cannot be used. If there are several members, each sends a mark of one part of its state, and two members
  // compute each audited shard; if marks or results differ, throws group::MembersDiffer. A worker that is alone throws
  // MemoryChanged if its own memory has changed, or if it computes an audited shard twice with different results.
  virtual StepResult step(const StepMessage& own, bool want_norm) = 0;
  // Makes every shard of the next step audited, whatever cluster.audit says.
  virtual void audit_next_step() = 0;
  // Makes the following steps under this condition (base/experiment.h), until another call. It changes their time and
  // never their result. May wait some seconds for samples. Returns false if the next step will not have the condition.
  virtual bool use(Condition condition) { return condition == Condition::usual; }
  // May take what the condition needs, until end_conditions().
  virtual bool can_use(Condition condition) { return condition == Condition::usual; }
  virtual void end_conditions() {}
  virtual void use_loader_threads(int64_t /*threads*/) {}
  // The lanes ask `too_late` before each part of the split; once it returns true, evaluate() throws OutOfTime. Only a
  // worker that has left the group may let it return true.
  virtual EvaluationResult evaluate(data::Split split, const std::function<bool()>& too_late = nullptr) = 0;
  virtual Digest digest() = 0;  // the digest of the whole state
  // Compares the states of all members; all of them call it after the same step. `own` is the digest of this member's
  // state. Throws group::MembersDiffer if the states differ. Only for a run of several members.
  virtual void compare(Digest own) = 0;
  // Throws MemoryChanged if tensors that training never changes have changed.
  virtual void check_memory() = 0;
  virtual checkpoint::OwnedSnapshot snapshot(const StateFacts& facts) = 0;  // one copy of the whole state
  virtual StateFacts restore(const checkpoint::Loaded& loaded) = 0;         // throws Error if it does not fit
  // Loads the weights that model.init_from names. Returns a sentence for the log.
  virtual std::string warm_start() = 0;
  virtual void leave_group() = 0;  // called when the group is over: from now on this worker computes everything itself
  // Chooses the threshold of two classes, or takes the given one, if the job asks for it. It is a part of the model,
  // and later evaluations use it. Evaluates the validation data only if `may_evaluate`. Returns a sentence for the log,
  // or "".
  virtual std::string choose_threshold(bool /*may_evaluate*/) { return ""; }
  // Writes the model for serving into the run directory. Returns a sentence that says why a part is missing, or "" if
  // the model is complete. The loop may call it again if `disk` throws.
  virtual std::string write_artifact(Disk& disk) = 0;
};

// ---- a run ---------------------------------------------------------------------------------------------------------

// The job, its data and its model, with every auto decided.
struct Plan {
  spec::Job job;
  std::string resolved_yaml;  // the job as the run directory keeps it
  std::string environment;    // environment.json; "" writes none
  data::DataInfo data;
  std::string model;  // identity of the model; a resume refuses another one
  int64_t parameters = 0, shards = 0, lanes = 0;
  int64_t compared_parts = 1;        // members compare their states in this many parts, one in each step
  std::vector<std::string> remarks;  // what the user should know about the model
};

// Writes resolved.yaml and environment.json, unless they exist and say the same. Only the process that leads the run
// calls this, and only once the group has admitted it, so that the files name what the group computes with. A run that
// resumes keeps resolved.yaml with its reasons. Throws DiskError, and whatever `disk` throws if this process must not
// write.
void write_decisions(Disk& disk, const std::string& run_directory, const Plan& plan);

// The run's directory was moved, removed or replaced while it trained. Nothing more may be written there.
struct DirectoryLost : Error {
  using Error::Error;
};

struct BeginTime {
  double wall_seconds = 0, monotonic_seconds = 0;
};
BeginTime begin_time(const Clock& clock);

// Each lane calls this function when it begins some work; any thread. If the function throws, the shard fails.
using OnWork = std::function<void(int lane, const Work& work)>;

// Measures what this worker spends. The loop calls it, on its own thread.
class Accounts {
 public:
  virtual ~Accounts() = default;
  virtual void steps_begin() = 0;  // before the first step of this attempt
  // What comes between these two counts for nothing: an experiment. Both may be called twice.
  virtual void pause() {}
  virtual void go_on() {}
  virtual void steps_end() = 0;  // after its last step, while the worker is still in its group
  // The part of the time since steps_begin() in which threads of this worker had to wait for a core.
  virtual double waiting_share() = 0;
  // Adds what was spent to report.json, before it is written. A run that failed has no steps_end().
  virtual void add_to(rundir::Outcome& outcome) = 0;
};

struct RunOptions {
  std::string run_directory;  // exists
  bool resume = false;        // continue from the newest intact checkpoint
  bool ledger = false;
  report::ReporterOptions screen;                  // how progress is shown; the loop sets the fields about files
  std::atomic<int>* stop_signals = nullptr;        // SIGINT, SIGTERM or SIGHUP once it asked to stop
  std::atomic<int>* checkpoint_signals = nullptr;  // number of SIGUSR1 received so far
  int64_t workers_here = 1;                        // workers of the run on this machine
  OnWork on_work = nullptr;
  StageTimer* stages = nullptr;  // what the lanes are in between the steps; null: nothing is measured
  // true: the run makes an experiment (base/experiment.h) once the pace of its steps is known, and ends after it.
  bool experiment = false;
  Accounts* accounts = nullptr;  // null: the report does not say it, and other programs may use the machine
  // Returns the energy in J that the machine has used since the run began to prepare. Called about once a second, by
  // one thread at a time. If it is null, budget.watts tells the energy.
  std::function<double()> joules = nullptr;
  BeginTime began;                      // when the run began to prepare
  bool budget_from_first_step = false;  // true: budget.time begins with the first step of this attempt
  // Returns why the run directory no longer belongs to the run, or "" if it does. The loop asks about once a second and
  // before each change of a file; if the directory is lost, it throws DirectoryLost. Any thread. If it is null, the
  // directory cannot be lost.
  std::function<std::string()> place_lost = nullptr;
  // Returns report.html for a run that ends in this way, from the files in its directory; "" for none. The run calls it
  // once, at its end. If it is null, the run has no page.
  std::function<std::string(const rundir::Outcome&)> page = nullptr;
  GoingBack going_back = {};  // how often run() itself went back to a checkpoint
  // Runs the writing of checkpoints; see checkpoint::WriterOptions. If null, a thread of its own writes them.
  std::function<void(std::function<void()>)> in_background = nullptr;
};

struct RunResult {
  int exit_code = 0;
  Step step;
  Digest digest;
  report::Metrics last;
  // What this attempt has measured: a step with all that comes before the next one, without evaluations; an evaluation
  // of the validation data in the training; the newest checkpoint.
  Pace steps, evaluations;
  double save_seconds = 0;
};

// Trains the job until its end, a stop or an error. `members` is null if the run has one worker; then this process
// holds the run's lock and has taken over `disk`. A member takes over when it becomes the leader. Throws Error for
// problems that the user can fix. If another process has taken over the run directory, a run of one worker throws
// WriterReplaced, and a member throws group::Fenced; this process has written nothing there since.
RunResult run(const Plan& plan, const RunOptions& options, Trainer& trainer, Members* members, WriteFence& disk,
              Clock& clock);

}  // namespace sinew::loop
