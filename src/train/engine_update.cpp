// Runs the last phase of a step, which makes the next state from the reduced result.
#include <cmath>

#include "train/engine.h"

namespace sinew::train {
namespace {

// Divides each value by the weight and returns the sum of squares. Keeps sixteen running sums and adds them at the end,
// so that the order of additions depends only on n.
__attribute__((target_clones("avx2", "default"), optimize("O3"))) double divide_and_square(float* values, int64_t n,
                                                                                           float weight) {
  double sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 16; ++k) {
      const float value = values[i + k] / weight;
      values[i + k] = value;
      sums[k] += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  for (; i < n; ++i) {
    values[i] /= weight;
    sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  for (int width = 8; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

}  // namespace

// Runs `work` for each group on all lanes. If there is only one group, runs it on this lane alone: waking the others
// would take longer than the work.
void Engine::for_each_group(const std::function<void(size_t group)>& work) {
  std::atomic<size_t> next{0};
  const auto work_on_groups = [&](int lane) {
    const torch::NoGradGuard no_grad;  // NoGradGuard is thread-local: each lane needs its own
    for (size_t group = next++; group < blocks_.groups.size(); group = next++) work(group);
    enter(lane, Stage::imbalance);
  };
  has_one_group() ? work_on_groups(0) : run_lanes(work_on_groups);
  enter_all(Stage::optimizer);
}

// Divides one block of the gradient in place and returns its sum of squares. The sum is finite if and only if all
// values are finite: no sum of squared floats overflows in double precision.
double Engine::divide(size_t b, double weight) {
  const Block& block = blocks_.blocks[b];
  torch::Tensor& gradient = gradients_[block.parameter];
  return divide_and_square(gradient.mutable_data_ptr<float>() + block.begin, block.end - block.begin,
                           static_cast<float>(weight));
}

double Engine::divide_and_norm(double weight, const std::vector<bool>& present) {
  std::vector<double> squares(blocks_.blocks.size(), 0.0);
  for_each_group([&](size_t group) {
    for (size_t b = blocks_.groups[group].first; b < blocks_.groups[group].last; ++b) {
      if (present[blocks_.blocks[b].parameter]) squares[b] = divide(b, weight);
    }
  });
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

void Engine::apply(double lr, double scale, const std::vector<bool>& present) {
  optimizer_->begin(present, decline(options_.job.optimizer.weight_decay_schedule));
  for_each_group([&](size_t group) { apply_group(group, lr, scale); });
}

void Engine::apply_group(size_t group, double lr, double scale) {
  const auto [first, last] = blocks_.groups[group];
  for (size_t b = first; b < last && scale != 1.0; ++b) {
    const Block& block = blocks_.blocks[b];
    flat(gradients_[block.parameter]).slice(0, block.begin, block.end).mul_(scale);
  }
  optimizer_->update(group, lr);
  // The decay of the averaged weights warms up as in TensorFlow. Otherwise early averages would consist mostly of
  // initial weights.
  const auto updates = static_cast<double>(state_.step.value);
  const double decay = std::min(options_.job.trainer.ema_decay, (1.0 + updates) / (10.0 + updates));
  for (size_t b = first; b < last; ++b) {
    const Block& block = blocks_.blocks[b];
    if (!state_.ema.empty()) {
      const torch::Tensor now = flat(state_.parameters[block.parameter].tensor).slice(0, block.begin, block.end);
      flat(state_.ema[block.parameter].tensor).slice(0, block.begin, block.end).lerp_(now, 1.0 - decay);
    }
    refresh_shadow(block);
  }
}

void Engine::check_buffers(const data::StepRange& range, double loss, const Contribution& sums) {
  if (sums.buffers_conflict)
    throw Diverged(
        "TRAIN_BUFFER_CONFLICT",
        "an integer or boolean buffer changed differently in two shards of step " + std::to_string(state_.step.value),
        "such buffers must change in the same way for all samples");
  for (size_t b = 0; b < sums.buffers.size(); ++b) {
    const torch::Tensor& delta = sums.buffers[b];
    if (!delta.defined() || !delta.is_floating_point() || at::isfinite(delta).all().item<bool>()) continue;
    // An element that was infinite before, such as in a mask, has the difference NaN.
    const torch::Tensor& buffer = state_.buffers[b].tensor;
    if (at::isfinite(buffer).logical_and(at::isfinite(delta).logical_not()).any().item<bool>()) {
      diverged(range, loss, "the buffer " + state_.buffers[b].name + " is no longer finite");
    }
  }
}

void Engine::commit_buffers(const Contribution& sums) {
  for (size_t b = 0; b < sums.buffers.size(); ++b) {
    const torch::Tensor& delta = sums.buffers[b];
    if (!delta.defined()) continue;
    torch::Tensor& buffer = state_.buffers[b].tensor;
    if (buffer.is_floating_point()) {
      buffer.copy_(buffer.to(torch::kFloat64) + delta / static_cast<double>(sums.samples));
    } else if (buffer.scalar_type() == torch::kBool) {
      buffer.copy_(buffer.to(torch::kInt8) + delta);
    } else {
      buffer.add_(delta);
    }
  }
}

}  // namespace sinew::train
