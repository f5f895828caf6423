// Inside train/: one step, and one evaluation, over lanes and a Reducer.
//
// Three phases a step, each on every lane: compute the shards, reduce the tree, apply the update; between them what
// only one thread may do. The engine knows no files, no clock and no job beyond the numbers it needs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "train/blocks.h"
#include "train/lanes.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/train.h"

namespace sinew::train {

// Everything the engine needs, every auto resolved.
struct EngineOptions {
  spec::Job job;  // trainer.shards, lanes, precision, memory_format, device, loss.name are concrete
  const data::Dataset* dataset = nullptr;
  data::Prefetcher* prefetcher = nullptr;
  Reducer* reducer = nullptr;                                           // of training steps; evaluation uses it too
  std::function<std::unique_ptr<model::Model>()> make_model = nullptr;  // instead of job.model's; equal at every call
  OnWork on_work = nullptr;
};

// Samples that were left out because their bytes do not decode.
struct SkippedSamples {
  static constexpr size_t kNamed = 5;
  int64_t count = 0;
  std::vector<std::string> names;  // the first kNamed of them, each with its reason
};

struct StepResult {
  double loss = 0;  // mean
  double loss_sum = 0, weight = 0;
  int64_t samples = 0, seen = 0, correct = 0;
  double grad_norm = -1;   // before clipping; -1 when nobody asked for it
  SkippedSamples skipped;  // corrupt samples left out, by this worker
  std::string note;        // what whoever decides for the run said with this step
};

struct EvaluationResult {
  report::Metrics metrics;         // "loss", "accuracy", ...
  std::vector<int64_t> confusion;  // [classes * classes]
  int64_t samples = 0;
  SkippedSamples skipped;  // by this worker
};

// A shard or a piece of evaluation could not be computed here: says which, and why.
struct ShardFailed : Error {
  using Error::Error;
};

// Thrown when a step's loss or gradient is not finite; the state is still that of before the step.
struct Diverged : Error {
  using Error::Error;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options);
  ~Engine();

  TrainingState& state() { return state_; }
  // After the state was filled from outside (resume, warm start).
  void state_replaced();

  // The samples the next step is made of; count 0 never happens.
  data::StepRange next_range() const;
  int64_t batch_size(Step step) const;  // by the job and by what was asked for so far
  // Commits one step at this learning rate. `want_norm`: tell the gradient's norm even if nothing clips. `note`: see
  // Reducer::begin.
  StepResult step(double lr, bool want_norm, std::string note = "");
  // Digest of the gradients and loss of the next step's first shard. Changes nothing.
  Digest probe();
  // Where sums are added from now on; between steps only.
  void set_reducer(Reducer& reducer);
  EvaluationResult evaluate(data::Part part);
  // What the model says to every sample of a part, in evaluation's pieces and with its weights. `take` is called by
  // every lane side by side, once a piece.
  using Take = std::function<void(const data::ShardRequest&, const data::Batch&, const torch::Tensor& outputs)>;
  void outputs(data::Part part, const Take& take);

  Lanes& lanes() { return lanes_; }
  int64_t shards() const { return *options_.job.trainer.shards; }
  const std::vector<torch::Tensor>& gradients() const { return gradients_; }  // of the last step, divided and clipped
  model::Model& replica(int lane) { return *replicas_.at(static_cast<size_t>(lane)); }
  const Loss& loss() const { return loss_; }
  torch::Tensor to_input(const data::Batch& batch) const;
  torch::Tensor to_target(const data::Batch& batch) const;

 private:
  std::optional<Contribution> train_shard(int lane, const data::StepRange& range, int64_t first, int64_t last,
                                          ShardIndex shard);
  std::vector<data::ShardRequest> pieces_of(data::Part part) const;  // what evaluation goes over, by sample
  std::optional<Contribution> evaluate_shard(int lane, const data::ShardRequest& request);
  // Computes what `work` says and delivers it. Throws ShardFailed.
  void do_shard(int lane, const Work& work, const std::function<std::optional<Contribution>()>& shard);
  void tell(int lane, const Work& work) const {
    if (options_.on_work) options_.on_work(lane, work);
  }
  void compute(const data::StepRange& range, const std::vector<std::pair<int64_t, int64_t>>& parts);
  torch::Tensor forward(int lane, const torch::Tensor& input, const torch::Tensor& target = {});
  std::vector<torch::Tensor> gradients_of(int lane, const Loss::Value& loss) const;
  torch::Tensor as_leaf_gradient(const torch::Tensor& gradient, const torch::Tensor& parameter) const;
  void start_buffers(int lane);
  std::vector<torch::Tensor> buffer_deltas(int lane, int64_t samples);
  void expect_next(const data::StepRange& range);
  bool small() const { return blocks_.groups.size() <= 1; }
  void over_groups(const std::function<void(size_t group)>& work);
  double divide(size_t block, double weight);
  double divide_and_norm(double weight, const std::vector<bool>& present);
  void apply(double lr, double scale, const std::vector<bool>& present);
  void apply_group(size_t group, double lr, double scale);
  void commit_buffers(const Contribution& sums);
  void bind_replicas(bool averaged);
  void refresh_shadow(const Block& block);
  RandomKey shard_key(ShardIndex shard) const;  // of everything random in this shard of the next step
  [[noreturn]] void diverged(const data::StepRange& range, double loss);
  std::string cause_of_divergence(const data::StepRange& range);
  void note_skipped(const std::vector<data::Skipped>& samples);  // any lane

  EngineOptions options_;
  data::DataInfo info_;
  torch::Device device_;
  bool low_precision_;
  torch::MemoryFormat memory_format_;
  BatchSizes batch_sizes_;
  Lanes lanes_;
  std::vector<std::unique_ptr<model::Model>> replicas_;  // by lane
  std::vector<std::vector<model::NamedTensor>> replica_parameters_, replica_buffers_;
  std::vector<size_t> trained_;  // parameters that are not frozen
  TrainingState state_;
  std::vector<torch::Tensor> gradients_;  // root
  std::vector<torch::Tensor> shadows_;    // bfloat16 image of a parameter, or undefined
  Blocks blocks_;
  std::unique_ptr<Optimizer> optimizer_;
  Loss loss_;
  MetricCounter training_metrics_, evaluation_metrics_;
  std::mutex skipped_mutex_;
  SkippedSamples skipped_;  // of the step or evaluation under way
  bool bound_to_average_ = false;
  void forget_expected();
  int64_t expected_step_ = -1;                     // the prefetcher was told of steps up to here
  std::map<int64_t, std::vector<bool>> expected_;  // by step of those: the shards it was told of
};

}  // namespace sinew::train
