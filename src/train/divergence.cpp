// Explains why a loss is not finite: names the step, the first operator or parameter that is not finite, and the
// samples.
#include <ATen/record_function.h>

#include <cmath>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

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

// Computes the step's samples again with the same random numbers, and describes what is not finite. If it finds
// nothing, says that a gradient is not finite.
std::string Engine::cause_of_divergence(const data::StepRange& range) {
  const torch::NoGradGuard no_grad;
  std::ostringstream text;
  std::string bad_parameter, bad_operator, bad_samples;
  for (const auto& parameter : state_.parameters) {
    if (bad_parameter.empty() && !finite(parameter.tensor)) bad_parameter = parameter.name;
  }
  int64_t bad = 0;
  const auto parts = data::split_into_shards(range.count, batch_size(state_.step), shards());
  for (size_t shard = 0; shard < parts.size(); ++shard) {
    const auto [first, last] = parts[shard];
    if (first == last) continue;
    const data::Batch batch =
        options_.prefetcher->take({data::Split::train, range.epoch, range.first + first, last - first});
    if (batch.count() == 0) continue;
    report_work(0, work_of(range, parts, ShardIndex(static_cast<int64_t>(shard))));
    reset_buffers(0);
    replicas_[0]->set_training(true);
    torch::Tensor losses;
    const torch::Tensor input = to_input(batch);
    if (bad_operator.empty() && !finite(input)) bad_operator = "the input is not finite";
    const std::string found = FirstBadOperator(replica_parameters_[0]).find([&] {
      const model::RandomScope random(shard_key(ShardIndex(static_cast<int64_t>(shard))));
      losses = loss_.per_sample(forward(0, input, to_target(batch)), to_target(batch));
    });
    if (bad_operator.empty() && !found.empty()) bad_operator = "first not finite at " + found;
    for (int64_t i = 0; i < batch.count(); ++i) {
      if (std::isfinite(losses[i].item<float>())) continue;
      if (++bad <= 5)
        bad_samples += (bad_samples.empty() ? "" : ", ") +
                       options_.dataset->describe(data::Split::train, batch.samples[static_cast<size_t>(i)]);
    }
  }
  if (!bad_parameter.empty()) text << "; parameter " << bad_parameter << " is not finite";
  if (!bad_operator.empty()) text << "; " << bad_operator;
  if (bad > 0)
    text << "; " << bad << " of " << range.count << " samples (" << bad_samples << (bad > 5 ? ", ..." : "") << ")";
  if (bad == 0 && bad_parameter.empty()) text << "; the outputs are finite, but a gradient is not";
  return text.str();
}

void Engine::diverged(const data::StepRange& range, double loss, const std::string& why) {
  std::ostringstream text;
  text << "training diverged at step " << state_.step << ": the loss is " << loss;
  try {
    text << (why.empty() ? cause_of_divergence(range) : "; " + why);
  } catch (const std::exception&) {
    // The samples cannot always be computed again: a library's loss may refuse single samples, or a file may have
    // disappeared. The error then names no cause.
  }
  throw Diverged("TRAIN_DIVERGED", text.str(),
                 "lower optimizer.lr, add scheduler.warmup or trainer.grad_clip_norm, and check these samples; the "
                 "last checkpoint is from before this step");
}

}  // namespace sinew::train
