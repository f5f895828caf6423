// Computes one step or one evaluation with lanes and a Reducer. Private to train/.
//
// A step has three phases: compute the shards, reduce the tree, apply the update. Each phase runs on all lanes; between
// the phases, one thread does the rest. The engine uses no files, and a clock only to measure (StageTimer).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/experiment.h"
#include "base/stage_timer.h"
#include "train/blocks.h"
#include "train/busy_threads.h"
#include "train/lanes.h"
#include "train/layer_count.h"
#include "train/loss.h"
#include "train/memory_parts.h"
#include "train/optimizer.h"
#include "train/train.h"

namespace sinew::train {

// The engine's inputs, with every auto resolved.
struct EngineOptions {
  spec::Job job;  // trainer.shards, lanes, precision, memory_format, device and loss.name are concrete
  const data::Dataset* dataset = nullptr;
  data::Prefetcher* prefetcher = nullptr;
  Reducer* reducer = nullptr;  // for training steps and evaluations
  // If set, builds the model instead of job.model. Returns an equal model at every call.
  std::function<std::unique_ptr<model::Model>()> make_model = nullptr;
  OnWork on_work = nullptr;
  StageTimer* stages = nullptr;  // with as many lanes as the engine; null: nothing is measured
  Faults faults = {};
  bool counts_layers = false;  // counts what the layers do in the first shard that it computes
};

// Keeps cores or the memory busy, as the condition of a step says.
class BusyScope {
 public:
  BusyScope(BusyThreads* threads, Condition condition);
  ~BusyScope();
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  BusyThreads* threads_;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options);
  ~Engine();

  TrainingState& state() { return state_; }
  // Call this after the state was changed from outside (resume, warm start).
  void state_replaced();

  // The samples of the next step; count is never 0.
  data::StepRange next_range() const;
  int64_t batch_size(Step step) const;  // from the job and the control log
  // Throws Error if the model cannot take a shard of this training, or a part of its evaluations, because it has too
  // many or too few samples. Without this, a run could fail after hours, at the smaller last batch of an epoch.
  void check_sizes() const;
  // Commits one step with the learning rate of the leader's message; a worker that is alone leads. With `want_norm`,
  // returns the gradient's norm even if nothing is clipped. With `explain`, the error of a step that diverges says what
  // was not finite first; to find that, the whole step is computed once more.
  StepResult step(const StepMessage& own, bool want_norm, bool explain = true);
  StepResult step(double lr, bool want_norm) { return step({lr, {}}, want_norm); }
  // See loop::Trainer::use().
  bool use(Condition condition);
  bool can_use(Condition condition);
  void end_conditions() { busy_.reset(); }
  void audit_next_step() { audits_next_step_ = true; }  // audits every shard of it, whatever cluster.audit says
  // Returns the digest of the gradients and the loss of the next step's first shard. Does not change the state.
  Digest probe();
  // Compares the states of all members in a collective without shards. `own` is the digest of this member's state.
  void compare(Digest own);
  // Throws MemoryChanged if a frozen parameter, its moving average or its bfloat16 copy (shadows_) differs from what it
  // was when it was first seen.
  void check_memory();
  int64_t compared_parts() const { return std::max(moving_.count(), still_.count()); }
  // Replaces the reducer. Call it only between steps.
  void set_reducer(Reducer& reducer);
  EvaluationResult evaluate(data::Split split, const std::function<bool()>& too_late = nullptr);  // see loop::Trainer
  // Returns the scores and labels of a split with two classes (Contribution::scores), in the order of its samples.
  std::vector<float> scores(data::Split split);
  // Later evaluations judge two classes by this score. The training does not use it.
  void use_threshold(std::optional<double> score) { evaluation_metrics_.use_threshold(score); }
  // Computes the model's outputs for every sample of a split, with the parts (pieces_of) and the weights that an
  // evaluation uses. The lanes call `take` in parallel, once for each part.
  using Take = std::function<void(const data::ShardRequest&, const data::Batch&, const torch::Tensor& outputs)>;
  void outputs(data::Split split, const Take& take);

  Lanes& lanes() { return lanes_; }
  int64_t shards() const { return *options_.job.trainer.shards; }
  // the gradients of the last step, divided and clipped
  const std::vector<torch::Tensor>& gradients() const { return gradients_; }
  // Identifies the code of the model and of the loss, which the job file only names.
  std::string code_identity() const { return replicas_.front()->identity() + model::loss_identity(options_.job); }
  // What a step with a whole batch takes, once a shard was counted. Call it only between steps.
  std::optional<rundir::ModelUse> model_use() const;
  // The operations of all training shards that this worker has computed, without sums and the optimizer.
  double computed_flops() const;
  model::Model& replica(int lane) { return *replicas_.at(static_cast<size_t>(lane)); }
  const Loss& loss() const { return loss_; }
  torch::Tensor to_input(const data::Batch& batch) const;
  torch::Tensor to_target(const data::Batch& batch) const;

 private:
  std::optional<Contribution> train_shard(int lane, const Work& work, bool again);
  std::unique_ptr<LayerCount> next_count(int lane);
  // Computes a shard. `again`: this result only serves to check another computation of the same shard, here or on
  // another member.
  using Compute = std::function<std::optional<Contribution>(bool again)>;
  // Computes the shard twice, and a third time if the results differ; check_audits() throws then.
  std::optional<Contribution> computed_twice(const Work& work, const Compute& compute);
  void check_audits();  // throws MemoryChanged if this worker computed a shard twice with different results
  // Returns which shards are computed twice in an evaluation of the present state.
  Audit audit_of_evaluation(int64_t pieces) const;
  std::vector<data::ShardRequest> pieces_of(data::Split split) const;  // the shards of an evaluation of this split
  std::optional<Contribution> evaluate_shard(int lane, const data::ShardRequest& request, bool again);
  // Returns the Work "computes this shard of the next step".
  Work work_of(const data::StepRange& range, const std::vector<std::pair<int64_t, int64_t>>& parts,
               ShardIndex shard) const;
  // Computes the shard of `work`, twice if `twice` (this worker then audits itself), and delivers it. Throws
  // ShardFailed if an exception stops the computation.
  void run_shard(int lane, const Work& work, const ShardTask& task, bool twice, const Compute& compute);
  // Runs work(lane) on the lanes that compute under the present condition.
  void run_lanes(const std::function<void(int)>& work, const std::function<void()>& on_failure = nullptr);
  int computing_lanes() const;
  // The shards of a step that this worker is expected to compute.
  std::vector<data::ShardRequest> requests_of(const data::StepRange& range, int64_t size,
                                              const std::vector<bool>& expected) const;
  bool wait_for_samples();  // of the next step; returns whether all of them are loaded
  void report_work(int lane, const Work& work) const {
    if (options_.on_work) options_.on_work(lane, work);
  }
  void enter(int lane, Stage stage) const {
    if (options_.stages != nullptr) options_.stages->enter(lane, stage);
  }
  void enter_all(Stage stage) const {
    if (options_.stages != nullptr) options_.stages->enter_all(stage);
  }
  Reducer::Reduced reduce_step(const StepMessage& own, const data::StepRange& range);
  Reducer::Reduced reduce_evaluation(const std::vector<data::ShardRequest>& pieces);
  // This worker computes the shards of `twice` twice.
  void compute(const data::StepRange& range, const std::vector<std::pair<int64_t, int64_t>>& parts, const Audit& twice);
  torch::Tensor forward(int lane, const torch::Tensor& input, const torch::Tensor& target = {});
  std::vector<torch::Tensor> gradients_of(int lane, const Loss::Value& loss) const;
  torch::Tensor as_leaf_gradient(const torch::Tensor& gradient, const torch::Tensor& parameter) const;
  void reset_buffers(int lane);
  std::vector<torch::Tensor> buffer_deltas(int lane, int64_t samples);
  void prefetch_next(const data::StepRange& range);
  bool has_one_group() const { return blocks_.groups.size() <= 1; }
  void for_each_group(const std::function<void(size_t group)>& work);
  double divide(size_t block, double weight);
  double divide_and_norm(double weight, const std::vector<bool>& present);
  // Fits the first replica to training samples, if its initial values depend on the data.
  void fit_to_data();
  // The factor of a schedule at the next step (loop::decline).
  double decline(const std::string& schedule);
  void apply(double lr, double scale, const std::vector<bool>& present);
  void apply_group(size_t group, double lr, double scale);
  void commit_buffers(const Contribution& sums);
  void bind_replicas(bool averaged);
  void refresh_shadow(const Block& block);
  void list_memory();
  // Runs a collective that computes nothing. Returns the leader's message.
  std::string exchange(const Purpose& purpose, std::string own_message, std::optional<Mark> mark = std::nullopt);
  Mark next_mark(bool compares);
  void check_unchanged(const Mark& before);
  RandomKey shard_key(ShardIndex shard) const;  // key of all random operators in this shard of the next step
  // Throws Diverged if a buffer that was finite so far would not be finite after the step, or if an integer buffer
  // changed differently in two shards.
  void check_buffers(const data::StepRange& range, double loss, const Contribution& sums);
  // Throws Diverged. `why` is the reason if it is known; otherwise the step's samples may be computed again to find it.
  [[noreturn]] void diverged(const data::StepRange& range, double loss, const std::string& why = "");
  std::string cause_of_divergence(const data::StepRange& range);
  struct NotFinite {                 // what is not finite in a shard or a step
    std::string place;               // what was not finite first; empty: nothing
    size_t samples = 0;              // number of samples whose loss is not finite
    std::vector<std::string> names;  // the names of the first of these samples
  };
  NotFinite not_finite_in(int lane, const Work& work);
  void record_skipped(const std::vector<data::Skipped>& samples);  // any lane may call it
  std::vector<int64_t> leave_out(data::Split split, data::Batch& batch);
  std::vector<int64_t> torn_everywhere(data::Split split, const std::vector<int64_t>& samples);
  bool agree_to_leave_out(data::Split split, const std::vector<int64_t>& samples);
  void undo_left_out();
  // Calls `make` for a step or an evaluation. If it throws, the state leaves out only the samples that it left out
  // before.
  template <typename Make>
  auto undoing_left_out(Make make) {
    newly_left_out_.clear();
    try {
      return make();
    } catch (...) {
      undo_left_out();
      throw;
    }
  }
  StepResult make_step(const StepMessage& own, bool want_norm);
  Reducer::Reduced evaluated(data::Split split);
  EvaluationResult make_evaluation(data::Split split);

  EngineOptions options_;
  data::DataInfo info_;
  bool low_precision_;
  torch::MemoryFormat memory_format_;
  loop::BatchSizes batch_sizes_;
  Lanes lanes_;
  Condition condition_ = Condition::usual;               // of the next steps
  std::unique_ptr<BusyThreads> busy_;                    // null until a condition needs it
  std::vector<std::unique_ptr<model::Model>> replicas_;  // one replica for each lane
  std::vector<std::vector<model::NamedTensor>> replica_parameters_, replica_buffers_;
  std::vector<size_t> trained_;  // parameters that are not frozen
  TrainingState state_;
  std::vector<torch::Tensor> gradients_;  // the summed gradients of a step
  std::vector<torch::Tensor> shadows_;    // bfloat16 copy of each parameter, or undefined
  Blocks blocks_;
  MemoryParts moving_, still_;                        // tensors that steps change, and those that no step changes
  std::vector<std::optional<Digest>> still_digests_;  // digests of the parts of still_, as first seen
  std::unique_ptr<Optimizer> optimizer_;
  Loss loss_;
  MetricCounter training_metrics_, evaluation_metrics_;
  std::mutex skipped_mutex_;
  SkippedSamples skipped_;  // the samples that the current step or evaluation skipped
  // samples of the current collective that do not decode here; the group has not decided to leave them out
  std::set<int64_t> not_decoded_here_;
  std::vector<loop::LeftOut> newly_left_out_;  // what the current step or evaluation has added to state_.left_out
  SkippedSamples left_out_;                    // see StepResult
  std::vector<std::string> damaged_copies_;
  std::string audit_failure_;        // how the results of a shard differed in this step; guarded by skipped_mutex_
  std::atomic<bool> counts_{false};  // a lane counts a shard, or has done so
  std::unique_ptr<LayerCount> counted_;
  int64_t counted_samples_ = 0;  // of that shard
  std::atomic<int64_t> computed_samples_{0};
  bool bound_to_average_ = false;
  bool audits_next_step_ = false;
  std::function<bool()> too_late_;      // of the current evaluation; may be empty
  std::optional<int64_t> total_steps_;  // as the job plans them; set when a schedule first asks
  bool explains_ = true;                // true: if the current step diverges, the error says why
  void forget_prefetched();
  int64_t prefetched_step_ = -1;                     // all steps up to this one were requested
  std::map<int64_t, std::vector<bool>> prefetched_;  // for each step: which shards were requested
};

}  // namespace sinew::train
