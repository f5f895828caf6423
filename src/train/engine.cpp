#include "train/engine.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/json_text.h"
#include "train/state.h"

namespace sinew::train {
namespace {

// Enables bfloat16 autocast for the calling thread, without autocast's cache of converted weights. All threads share
// that cache, so lanes would compete for it. Instead, all lanes use the shadows of the weights.
class AutocastScope {
 public:
  explicit AutocastScope(bool on) : on_(on) {
    if (!on_) return;
    was_enabled_ = at::autocast::is_autocast_enabled(torch::kCPU);
    had_cache_ = at::autocast::is_autocast_cache_enabled();
    at::autocast::set_autocast_enabled(torch::kCPU, true);
    at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastScope() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(torch::kCPU, was_enabled_);
    at::autocast::set_autocast_cache_enabled(had_cache_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool on_, was_enabled_ = false, had_cache_ = false;
};

torch::Tensor wrap(const Array& array) {
  const auto type = array.dtype == DType::f32 ? torch::kFloat32 : torch::kInt64;
  SINEW_CHECK(array.dtype == DType::f32 || array.dtype == DType::i64, name_of(array.dtype));
  return torch::from_blob(const_cast<std::byte*>(array.bytes.data()), at::IntArrayRef(array.shape),
                          torch::TensorOptions().dtype(type));
}

// The optimizers keep squares of gradients in float32. A gradient above about 1.8e19 makes such a square infinite. The
// weight of that gradient would then never change again, without any other sign.
constexpr double kLargestNorm = 1e18;

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      info_(options.dataset->info()),
      low_precision_(options.job.trainer.precision == "bf16"),
      memory_format_(options.job.trainer.memory_format == "channels_last" ? torch::MemoryFormat::ChannelsLast
                                                                          : torch::MemoryFormat::Contiguous),
      batch_sizes_(options.job.trainer, info_.train_size, info_.tokens_per_sample),
      lanes_(static_cast<int>(*options.job.trainer.lanes)),
      loss_(options.job, info_),
      training_metrics_(options.job.loss.name, info_, false),
      evaluation_metrics_(options.job.loss.name, info_, true) {
  const spec::Job& job = options_.job;
  for (int lane = 0; lane < lanes_.count(); ++lane) {
    replicas_.push_back(options_.make_model
                            ? options_.make_model()
                            : model::make_model(job.model, info_, outputs_for(job.loss.name, info_), job.trainer.seed));
    if (lane == 0) {
      fit_to_data();
      state_ = initial_state(job, *replicas_[0], memory_format_);
    }
    replica_parameters_.push_back(replicas_.back()->parameters());
    replica_buffers_.push_back(replicas_.back()->buffers());
  }
  for (size_t p = 0; p < state_.parameters.size(); ++p) {
    const torch::Tensor& parameter = state_.parameters[p].tensor;
    // A frozen parameter has neither a gradient nor optimizer state. Empty tensors take their places.
    const bool trained = replica_parameters_[0][p].tensor.requires_grad();
    const torch::Tensor room = trained ? parameter : torch::empty({0}, parameter.options());
    gradients_.push_back(torch::zeros_like(room));
    for (const std::string& name : optimizer_state_names(job.optimizer))
      state_.optimizer[name].push_back(torch::zeros_like(room));
    if (trained) trained_.push_back(p);
    const bool shadow = low_precision_ && replicas_[0]->wants_shadow(p);
    shadows_.push_back(shadow ? torch::empty_like(parameter, torch::kBFloat16) : torch::Tensor());
  }
  blocks_ = make_blocks(gradients_);
  std::vector<model::Model::UpdateFactors> factors;
  for (size_t p = 0; p < state_.parameters.size(); ++p) factors.push_back(replicas_[0]->update_factors(p));
  optimizer_ = std::make_unique<Optimizer>(job.optimizer, std::move(factors), state_, gradients_, blocks_);
  list_memory();
  state_replaced();
}

Engine::~Engine() = default;

// Every member draws the same samples and computes the same values. The other replicas use the memory of the state.
void Engine::fit_to_data() {
  constexpr int64_t kMostSamples = 10'000;
  model::Model& model = *replicas_.front();
  if (!model.fits_data() || info_.train_size == 0) return;
  const RandomKey key = derive(random_key({options_.job.trainer.seed}), "fit");
  const data::Permutation order(derive(key, "samples"), info_.train_size);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < std::min(kMostSamples, info_.train_size); ++i) samples.push_back(order[i]);
  const data::Batch batch =
      options_.dataset->load(data::Split::train, samples, {options_.job.trainer.seed, 0, /*augment=*/false});
  if (batch.count() == 0) return;
  const model::RandomScope random(key);
  model.fit(to_input(batch));
}

double Engine::decline(const std::string& schedule) {
  if (schedule == "constant") return 1.0;
  if (!total_steps_) {
    const loop::Lengths lengths = loop::lengths_of(options_.job, info_.train_size, info_.tokens_per_sample);
    loop::check_declines(options_.job, lengths);
    total_steps_ = lengths.total_steps;
  }
  return loop::decline(schedule, state_.step.value, *total_steps_);
}

void Engine::state_replaced() {
  const torch::NoGradGuard no_grad;
  for (size_t p = 0; p < shadows_.size(); ++p) {
    if (shadows_[p].defined()) shadows_[p].copy_(state_.parameters[p].tensor);
  }
  std::ranges::fill(still_digests_, std::nullopt);
  bind_replicas(false);
  forget_prefetched();
}

void Engine::set_reducer(Reducer& reducer) {
  options_.reducer = &reducer;
  forget_prefetched();
}

void Engine::forget_prefetched() {
  options_.prefetcher->clear();
  prefetched_step_ = -1;
  prefetched_.clear();
}

void Engine::bind_replicas(bool averaged) {
  for (auto& replica : replicas_) {
    for (size_t p = 0; p < state_.parameters.size(); ++p) {
      const torch::Tensor& shadow = shadows_[p];
      replica->share(p, averaged ? state_.ema[p].tensor : shadow.defined() ? shadow : state_.parameters[p].tensor);
    }
  }
  bound_to_average_ = averaged;
}

void Engine::refresh_shadow(const Block& block) {
  const torch::Tensor& shadow = shadows_[block.parameter];
  if (!shadow.defined()) return;
  flat(shadow)
      .slice(0, block.begin, block.end)
      .copy_(flat(state_.parameters[block.parameter].tensor).slice(0, block.begin, block.end));
}

torch::Tensor Engine::to_input(const data::Batch& batch) const {
  const torch::Tensor input = wrap(batch.input);
  return input.dim() == 4 ? input.contiguous(memory_format_) : input;
}

torch::Tensor Engine::to_target(const data::Batch& batch) const {
  return wrap(batch.target);
}

torch::Tensor Engine::forward(int lane, const torch::Tensor& input, const torch::Tensor& target) {
  const AutocastScope autocast(low_precision_);
  return replicas_[static_cast<size_t>(lane)]->forward(input, target);
}

void Engine::reset_buffers(int lane) {
  const torch::NoGradGuard no_grad;
  auto& buffers = replica_buffers_[static_cast<size_t>(lane)];
  for (size_t b = 0; b < buffers.size(); ++b) buffers[b].tensor.copy_(state_.buffers[b].tensor);
}

// Returns how the shard changed the buffers:
// - A floating-point buffer gives samples * delta in float64. The step adds these up and divides by its samples.
// - An integer buffer gives its delta, which must be equal in all shards. A boolean buffer is treated as an integer
//   one.
// - An unchanged buffer is absent, so that the step leaves it unchanged to the bit.
std::vector<torch::Tensor> Engine::buffer_deltas(int lane, int64_t samples) {
  const torch::NoGradGuard no_grad;
  const auto& buffers = replica_buffers_[static_cast<size_t>(lane)];
  std::vector<torch::Tensor> deltas(buffers.size());
  for (size_t b = 0; b < buffers.size(); ++b) {
    const torch::Tensor &now = buffers[b].tensor, &before = state_.buffers[b].tensor;
    if (torch::equal(now, before)) continue;
    if (now.is_floating_point()) {
      deltas[b] = (now.to(torch::kFloat64) - before.to(torch::kFloat64)) * static_cast<double>(samples);
    } else if (now.scalar_type() == torch::kBool) {
      deltas[b] = now.to(torch::kInt8) - before.to(torch::kInt8);
    } else {
      deltas[b] = now - before;
    }
  }
  return deltas;
}

torch::Tensor Engine::as_leaf_gradient(const torch::Tensor& gradient, const torch::Tensor& parameter) const {
  if (!gradient.defined()) return gradient;
  if (gradient.layout() != torch::kStrided) return as_leaf_gradient(gradient.to_dense(), parameter);
  if (gradient.scalar_type() == torch::kFloat32 && gradient.strides() == parameter.strides()) return gradient;
  return torch::empty_like(parameter).copy_(gradient);
}

// Returns the gradient of each parameter. A gradient is absent if the parameter is frozen or the loss does not depend
// on it. All gradients are absent if the shard has no weight.
std::vector<torch::Tensor> Engine::gradients_of(int lane, const Loss::Value& loss) const {
  const auto& parameters = replica_parameters_[static_cast<size_t>(lane)];
  std::vector<torch::Tensor> all(parameters.size());
  if (!(loss.weight > 0) || trained_.empty()) return all;
  if (!loss.sum.requires_grad())
    throw Error("MODEL_OUTPUT_MISMATCH", "the loss does not depend on a trained parameter, so it has no gradient",
                "return the model's output without detach() and torch.no_grad(), as real numbers");
  torch::autograd::variable_list leaves;
  for (const size_t p : trained_) leaves.push_back(parameters[p].tensor);
  const auto gradients = torch::autograd::grad({loss.sum}, leaves, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                               /*allow_unused=*/true);
  for (size_t i = 0; i < trained_.size(); ++i)
    all[trained_[i]] = as_leaf_gradient(gradients[i], state_.parameters[trained_[i]].tensor);
  return all;
}

RandomKey Engine::shard_key(ShardIndex shard) const {
  return derive(random_key({state_.seed, static_cast<uint64_t>(state_.step.value), static_cast<uint64_t>(shard.value)}),
                "forward");
}

void Engine::record_skipped(const std::vector<data::Skipped>& samples) {
  if (samples.empty()) return;
  const std::lock_guard lock(skipped_mutex_);
  for (const data::Skipped& sample : samples) {
    ++skipped_.count;
    if (skipped_.names.size() < SkippedSamples::kNamed) skipped_.names.push_back(sample.what);
  }
}

std::optional<Contribution> Engine::train_shard(int lane, const Work& work, bool again) {
  if (work.count == 0) return std::nullopt;
  enter(lane, Stage::data_wait);
  data::Batch batch = options_.prefetcher->take({data::Split::train, work.epoch, work.first, work.count});
  if (!again) record_skipped(batch.skipped);
  Contribution leaf;
  leaf.not_decoded = leave_out(data::Split::train, batch);
  if (batch.count() == 0) return leaf.not_decoded.empty() ? std::nullopt : std::optional(std::move(leaf));
  enter(lane, Stage::forward);
  reset_buffers(lane);
  const model::RandomScope random(shard_key(ShardIndex(work.shard)));
  const torch::Tensor targets = to_target(batch);
  std::unique_ptr<LayerCount> count = next_count(lane);
  const auto counted = [&](const auto& pass) { count ? count->observe(pass) : pass(); };
  torch::Tensor outputs;
  Loss::Value loss;
  counted([&] {
    outputs = forward(lane, to_input(batch), targets);
    loss = loss_(outputs, targets);
  });
  training_metrics_.count(outputs.detach(), targets, leaf);
  enter(lane, Stage::backward);
  counted([&] { leaf.gradients = gradients_of(lane, loss); });
  leaf.buffers = buffer_deltas(lane, batch.count());
  leaf.loss = loss.sum.item<double>();
  leaf.weight = loss.weight;
  leaf.samples = batch.count();
  if (options_.faults.in_shard) options_.faults.in_shard(work, again, leaf.gradients);
  computed_samples_ += batch.count();
  if (count && loss.weight > 0) {
    counted_samples_ = batch.count();
    counted_ = std::move(count);
  } else if (count) {
    counts_ = false;  // the shard had no backward pass, so another one is counted
  }
  return leaf;
}

// Returns null unless this lane has to count the shard that it is about to compute.
std::unique_ptr<LayerCount> Engine::next_count(int lane) {
  if (!options_.counts_layers || counts_ || counts_.exchange(true)) return nullptr;
  const auto replica = static_cast<size_t>(lane);
  return std::make_unique<LayerCount>(replica_parameters_[replica], replica_buffers_[replica]);
}

double Engine::computed_flops() const {
  if (!counted_) return 0;
  double flops = 0;
  for (const rundir::LayerUse& layer : counted_->layers()) flops += layer.flops;
  return flops * static_cast<double>(computed_samples_) / static_cast<double>(counted_samples_);
}

std::optional<rundir::ModelUse> Engine::model_use() const {
  if (!counted_) return std::nullopt;
  const int64_t size = batch_size(state_.step), samples = std::min(size, info_.train_size);
  const auto parts = data::split_into_shards(samples, size, shards());
  const auto full = std::ranges::count_if(parts, [](const auto& part) { return part.first < part.second; });
  rundir::ModelUse use =
      use_in_step(counted_->layers(), static_cast<double>(samples) / static_cast<double>(counted_samples_), full);
  for (const size_t p : trained_) use.gradient_bytes += static_cast<int64_t>(state_.parameters[p].tensor.nbytes());
  return use;
}

int64_t Engine::batch_size(Step step) const {
  return state_.control.batch_size(step, batch_sizes_.at(step.value));
}

data::StepRange Engine::next_range() const {
  const auto& trainer = options_.job.trainer;
  return data::step_range(state_.cursor, info_.train_size, batch_size(state_.step), trainer.drop_last);
}

std::vector<data::ShardRequest> Engine::requests_of(const data::StepRange& range, int64_t size,
                                                    const std::vector<bool>& expected) const {
  std::vector<data::ShardRequest> requests;
  const auto parts = data::split_into_shards(range.count, size, shards());
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [first, last] = parts[i];
    if (first < last && expected[i])
      requests.push_back({data::Split::train, range.epoch, range.first + first, last - first});
  }
  return requests;
}

// Requests the shards of this step and of the next two from the prefetcher, each of them once. Leaves out shards that
// another worker is expected to compute.
void Engine::prefetch_next(const data::StepRange& range) {
  if (options_.dataset->in_memory()) return;  // loading is a copy, which costs the lane less than a request
  const auto& trainer = options_.job.trainer;
  data::StepRange ahead = range;
  for (int64_t step = state_.step.value; step <= state_.step.value + 2; ++step) {
    const int64_t size = batch_size(Step(step));
    if (step > prefetched_step_) {
      std::vector<bool>& expected = prefetched_[step];
      for (int64_t shard = 0; shard < shards(); ++shard)
        expected.push_back(options_.reducer->expects(ShardIndex(shard), shards()));
      options_.prefetcher->prefetch(requests_of(ahead, size, expected));
      prefetched_step_ = step;
    }
    ahead = data::step_range(data::after(ahead, info_.train_size, size, trainer.drop_last), info_.train_size,
                             batch_size(Step(step + 1)), trainer.drop_last);
  }
}

void Engine::run_shard(int lane, const Work& work, const ShardTask& task, bool twice, const Compute& compute) {
  std::optional<Contribution> leaf;
  try {
    report_work(lane, work);
    leaf = twice ? computed_twice(work, compute) : compute(task.audit);
  } catch (const Error& error) {
    throw ShardFailed("TRAIN_SHARD_FAILED", to_string(work) + ": " + error.what(), error.hint);
  } catch (const c10::Error& error) {
    throw ShardFailed("TRAIN_SHARD_FAILED", to_string(work) + ": " + error.what_without_backtrace(), "");
  } catch (const std::exception& error) {
    throw ShardFailed("TRAIN_SHARD_FAILED", to_string(work) + ": " + error.what(), "");
  }
  enter(lane, Stage::reduction);
  task.audit ? options_.reducer->deliver_audit(task, std::move(leaf))
             : options_.reducer->deliver(task, std::move(leaf));
  report_work(lane, {Work::Kind::reducing, work.step});
}

Work Engine::work_of(const data::StepRange& range, const std::vector<std::pair<int64_t, int64_t>>& parts,
                     ShardIndex shard) const {
  const auto [first, last] = parts[static_cast<size_t>(shard.value)];
  return {Work::Kind::computing, state_.step.value, shard.value, range.epoch, range.first + first, last - first};
}

// Computes all shards that the reducer gives to this worker, on all lanes, and then reduces the tree.
void Engine::compute(const data::StepRange& range, const std::vector<std::pair<int64_t, int64_t>>& parts,
                     const Audit& twice) {
  std::vector<std::atomic<bool>> computed(parts.size());
  const int64_t step = state_.step.value;
  const auto work_on_lane = [&](int lane) {
    report_work(lane, {Work::Kind::reducing, step});
    enter(lane, Stage::reduction);
    replicas_[static_cast<size_t>(lane)]->set_training(true);
    while (const auto task = options_.reducer->next_shard()) {
      const auto index = static_cast<size_t>(task->shard.value);
      const Work work = work_of(range, parts, task->shard);
      if (!task->audit) computed[index] = true;
      run_shard(lane, work, *task, twice.contains(task->shard),
                [&](bool again) { return train_shard(lane, work, again); });
    }
    report_work(lane, {});
    enter(lane, Stage::imbalance);
  };
  run_lanes(work_on_lane, [this] { options_.reducer->give_up(); });
  enter_all(Stage::reduction);
  const auto reduce = [&](int lane) {
    options_.reducer->reduce();
    enter(lane, Stage::imbalance);
  };
  has_one_group() ? reduce(0) : run_lanes(reduce);
  // If another worker computed a shard that was loaded ahead, that shard would stay in the prefetcher for ever. The
  // prefetcher is then cleared.
  const auto expected = prefetched_.find(state_.step.value);
  if (expected == prefetched_.end()) return;
  const bool left = !std::equal(computed.begin(), computed.end(), expected->second.begin(), expected->second.end());
  prefetched_.erase(expected);
  if (left) forget_prefetched();
}

Digest Engine::probe() {
  const data::StepRange range = next_range();
  const auto parts = data::split_into_shards(range.count, batch_size(state_.step), shards());
  std::vector<Digest> found;
  lanes_.run([&](int lane) {
    if (lane != 0) return;
    replicas_[0]->set_training(true);
    const auto leaf = train_shard(0, work_of(range, parts, ShardIndex(0)), false);
    if (!leaf) return;
    for (const torch::Tensor& gradient : leaf->gradients) {
      if (!gradient.defined()) continue;
      const torch::Tensor values = gradient.cpu();
      found.push_back(digest_of(std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes())));
    }
    found.push_back(digest_of(std::as_bytes(std::span(&leaf->loss, 1))));
  });
  enter_all(Stage::startup);
  return digest_of(found);
}

// Computes the shards of a step together with the other members.
Reducer::Reduced Engine::reduce_step(const StepMessage& own, const data::StepRange& range) {
  const auto parts = data::split_into_shards(range.count, batch_size(state_.step), shards());
  skipped_ = {};
  not_decoded_here_.clear();
  const bool compares = options_.reducer->compares();
  enter_all(Stage::digest);
  const Mark mark = next_mark(compares);
  enter_all(Stage::loop);
  const double usual = options_.job.cluster.audit;
  Audit audit = audit_of(state_.seed, state_.step, shards(), audits_next_step_ ? 1 : usual);
  audit.all = usual >= 1;
  options_.reducer->begin(shards(), gradients_, to_text(own), compares ? std::optional(mark) : std::nullopt,
                          compares ? audit : Audit(), {Purpose::Kind::step, state_.step});
  compute(range, parts, compares ? Audit() : audit);
  enter_all(Stage::digest);
  if (!compares) check_unchanged(mark);
  check_audits();
  report_work(0, {Work::Kind::updating, state_.step.value});
  enter_all(Stage::optimizer);
  Reducer::Reduced reduced = options_.reducer->reduced();
  if (options_.faults.in_sums) options_.faults.in_sums(state_.step, gradients_);
  return reduced;
}

StepResult Engine::step(const StepMessage& own, bool want_norm, bool explain) {
  explains_ = explain;
  const BusyScope busy(busy_.get(), condition_);
  return undoing_left_out([&] { return make_step(own, want_norm); });
}

StepResult Engine::make_step(const StepMessage& own, bool want_norm) {
  if (bound_to_average_) bind_replicas(false);
  if (options_.faults.in_state) options_.faults.in_state(state_);
  const data::StepRange range = next_range();
  const int64_t size = batch_size(state_.step);
  const spec::ModelOptions& model = options_.job.model;
  const double dropout = decline(model.name == "tabular" ? model.tabular.dropout_schedule : "constant");
  for (const auto& replica : replicas_) replica->set_dropout_factor(dropout);
  prefetch_next(range);
  Reducer::Reduced reduced = reduce_step(own, range);
  while (!reduced.sums.not_decoded.empty() && !agree_to_leave_out(data::Split::train, reduced.sums.not_decoded))
    reduced = reduce_step(own, range);
  audits_next_step_ = false;

  StepMessage message = loop::step_message_of(reduced.control_message);
  StepResult result;
  result.learning_rate = message.learning_rate;
  result.entries = std::move(message.entries);
  result.compare = reduced.compare;
  result.wrong = std::move(reduced.wrong);
  result.skipped = std::exchange(skipped_, {});
  result.left_out = std::exchange(left_out_, {});
  result.damaged_copies = std::exchange(damaged_copies_, {});
  result.loss_sum = reduced.sums.loss;
  result.weight = reduced.sums.weight;
  result.samples = reduced.sums.samples;
  if (reduced.sums.counts.size() >= 2) {
    result.seen = reduced.sums.counts[0];
    result.correct = reduced.sums.counts[1];
  }
  const torch::NoGradGuard no_grad;
  if (reduced.sums.weight > 0) {
    result.loss = reduced.sums.loss / reduced.sums.weight;
    if (!std::isfinite(result.loss)) diverged(range, result.loss);
    // Checks the norm in every step, even without want_norm, because one bad gradient would spoil all later states.
    const double norm = divide_and_norm(reduced.sums.weight, reduced.present);
    if (!std::isfinite(norm)) diverged(range, result.loss);
    const double clip = options_.job.trainer.grad_clip_norm;
    if (want_norm || clip > 0) result.grad_norm = norm;
    const double scale = clip > 0 && norm > clip ? clip / (norm + 1e-6) : 1.0;
    if (norm * scale > kLargestNorm) {
      std::string why = "the gradient is too large for the optimizer: its norm is ";
      append_json_number(why, norm);
      diverged(range, result.loss, why);
    }
    check_buffers(range, result.loss, reduced.sums);
    apply(result.learning_rate, scale, reduced.present);
    commit_buffers(reduced.sums);
  }
  state_.cursor = data::after(range, info_.train_size, size, options_.job.trainer.drop_last);
  state_.samples += range.count;
  state_.tokens += range.count * info_.tokens_per_sample;
  state_.step = state_.step.next();
  report_work(0, {});
  enter_all(Stage::loop);
  return result;
}

}  // namespace sinew::train
