// Explains why a loss is not finite: names the step, the first operator or parameter that is not finite, and the
// samples.
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

constexpr size_t kNamedSamples = 5;

bool finite(const torch::Tensor& tensor) {
  return !tensor.defined() || !tensor.is_floating_point() || at::isfinite(tensor).all().item<bool>();
}

// Observes the operators of this thread to find the first one whose inputs are finite and whose output is not.
class FirstBadOperator {
 public:
  explicit FirstBadOperator(const std::vector<model::NamedTensor>& parameters) : parameters_(parameters) {}

  // Runs `work`. Returns the operator's name and the parameter that it used, or "" if everything is finite.
  template <typename Work>
  std::string find(Work work) {
    const Watch watch(*this);
    work();
    return found_;
  }

 private:
  // Observes operators while it exists, so that the observation ends even if `work` throws.
  class Watch {
   public:
    explicit Watch(FirstBadOperator& watcher) {
      current = &watcher;
      handle_ =
          at::addThreadLocalCallback(at::RecordFunctionCallback(&FirstBadOperator::on_start, &FirstBadOperator::on_end)
                                         .needsInputs(true)
                                         .needsOutputs(true)
                                         .scopes({at::RecordScope::FUNCTION}));
    }
    ~Watch() {
      at::removeCallback(handle_);
      current = nullptr;
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    at::CallbackHandle handle_;
  };

  // What on_start found about an operator's inputs. The inputs may no longer exist when on_end runs.
  struct Call : at::ObserverContext {
    bool inputs_finite = true;
    std::string layer;
  };

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    FirstBadOperator* const self = std::exchange(current, nullptr);  // so that the calls made here are not observed
    if (self != nullptr && self->found_.empty()) self->check_inputs(function, *call);
    current = self;
    return call;
  }

  static void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
    FirstBadOperator* const self = std::exchange(current, nullptr);
    if (self != nullptr && self->found_.empty()) self->check_outputs(function, static_cast<const Call&>(*context));
    current = self;
  }

  void check_inputs(const at::RecordFunction& function, Call& call) const {
    for (const c10::IValue& value : function.inputs()) {
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      const torch::Tensor tensor = value.toTensor();
      call.inputs_finite = call.inputs_finite && finite(tensor);
      for (const auto& parameter : parameters_) {
        if (parameter.tensor.data_ptr() == tensor.data_ptr() && parameter.tensor.dim() > 1) call.layer = parameter.name;
      }
    }
  }

  void check_outputs(const at::RecordFunction& function, const Call& call) {
    // aten::empty_like and its relatives only take memory, and what is in it depends on what was there before.
    if (std::string_view(function.name()).find("empty") != std::string_view::npos) return;
    bool outputs_finite = true;
    for (const c10::IValue& value : function.outputs()) {
      if (value.isTensor()) outputs_finite = outputs_finite && finite(value.toTensor());
    }
    if (!call.inputs_finite || outputs_finite) return;
    found_ = function.name();
    if (!call.layer.empty()) found_ += " (" + call.layer + ")";
  }

  static thread_local FirstBadOperator* current;
  const std::vector<model::NamedTensor>& parameters_;
  std::string found_;
};

thread_local FirstBadOperator* FirstBadOperator::current = nullptr;

}  // namespace

// Computes a shard again with the same random numbers, and finds what is not finite.
Engine::NotFinite Engine::not_finite_in(int lane, const Work& work) {
  NotFinite found;
  const data::Batch batch = options_.prefetcher->take({data::Split::train, work.epoch, work.first, work.count});
  if (batch.count() == 0) return found;
  report_work(lane, work);
  reset_buffers(lane);
  torch::Tensor losses;
  const torch::Tensor input = to_input(batch);
  if (!finite(input)) found.place = "the input is not finite";
  const std::string name = FirstBadOperator(replica_parameters_[static_cast<size_t>(lane)]).find([&] {
    const model::RandomScope random(shard_key(ShardIndex(work.shard)));
    losses = loss_.per_sample(forward(lane, input, to_target(batch)), to_target(batch));
  });
  if (found.place.empty() && !name.empty()) found.place = "first not finite at " + name;
  for (int64_t i = 0; i < batch.count(); ++i) {
    if (std::isfinite(losses[i].item<float>())) continue;
    if (++found.samples <= kNamedSamples)
      found.names.push_back(options_.dataset->describe(data::Split::train, batch.samples[static_cast<size_t>(i)]));
  }
  return found;
}

// Computes the step's samples again on all lanes, and describes what is not finite. If it finds nothing, says that a
// gradient is not finite. The text does not depend on the lanes.
std::string Engine::cause_of_divergence(const data::StepRange& range) {
  const auto parts = data::split_into_shards(range.count, batch_size(state_.step), shards());
  std::vector<NotFinite> found(parts.size());
  std::atomic<size_t> next = 0;
  lanes_.run([&](int lane) {
    const torch::NoGradGuard no_grad;
    replicas_[static_cast<size_t>(lane)]->set_training(true);
    for (size_t shard = next++; shard < parts.size(); shard = next++) {
      const Work work = work_of(range, parts, ShardIndex(static_cast<int64_t>(shard)));
      if (work.count > 0) found[shard] = not_finite_in(lane, work);
    }
    report_work(lane, {});
  });
  NotFinite all;  // in the order of the shards
  for (NotFinite& of_shard : found) {
    if (all.place.empty()) all.place = std::move(of_shard.place);
    all.samples += of_shard.samples;
    all.names.insert(all.names.end(), of_shard.names.begin(), of_shard.names.end());
  }
  const torch::NoGradGuard no_grad;
  const auto parameter =
      std::ranges::find_if(state_.parameters, [](const auto& named) { return !finite(named.tensor); });
  std::ostringstream text;
  if (parameter != state_.parameters.end()) text << "; parameter " << parameter->name << " is not finite";
  if (!all.place.empty()) text << "; " << all.place;
  if (all.samples > 0) {
    text << "; " << all.samples << " of " << range.count << " samples (";
    for (size_t i = 0; i < all.names.size() && i < kNamedSamples; ++i) text << (i > 0 ? ", " : "") << all.names[i];
    text << (all.samples > kNamedSamples ? ", ..." : "") << ")";
  } else if (parameter == state_.parameters.end()) {
    text << "; the outputs are finite, but a gradient is not";
  }
  return text.str();
}

void Engine::diverged(const data::StepRange& range, double loss, const std::string& why) {
  std::ostringstream text;
  text << "training diverged at step " << state_.step << ": the loss is " << loss;
  try {
    if (!why.empty()) text << "; " << why;
    if (why.empty() && explains_) text << cause_of_divergence(range);
  } catch (const std::exception&) {
    // The samples cannot always be computed again: a library's loss may refuse single samples, or a file may have
    // disappeared. The error then names no cause.
  }
  throw Diverged("TRAIN_DIVERGED", text.str(),
                 "lower optimizer.lr, add scheduler.warmup or trainer.grad_clip_norm, and check these samples; the "
                 "last checkpoint is from before this step");
}

}  // namespace sinew::train
