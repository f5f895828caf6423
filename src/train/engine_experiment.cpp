// Makes steps under the conditions of an experiment (base/experiment.h). The result of a step does not depend on who
// computes a shard, and when.
#include "base/machine.h"
#include "base/proc.h"
#include "base/resident_memory.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

constexpr double kSamplesSeconds = 10;  // a source that takes longer for a step shows that it limits the run

bool needs_threads(Condition condition) {
  return condition == Condition::cores_busy || condition == Condition::memory_busy;
}

// The threads read memory of their own, which must not bring the run to its limit. Other workers may share the limit,
// so a worker takes no more than a quarter of it.
bool has_memory_for_threads() {
  return machine_memory() / 4 > static_cast<uint64_t>(resident_memory().held) + BusyThreads::kBytes;
}

}  // namespace

BusyScope::BusyScope(BusyThreads* threads, Condition condition)
    : threads_(needs_threads(condition) ? threads : nullptr) {
  if (threads_ != nullptr)
    threads_->work(condition == Condition::memory_busy ? BusyThreads::Work::read_memory : BusyThreads::Work::compute);
}

BusyScope::~BusyScope() {
  if (threads_ != nullptr) threads_->work(BusyThreads::Work::rest);
}

int Engine::computing_lanes() const {
  const bool all = condition_ == Condition::usual || condition_ == Condition::samples_ready;
  return all ? lanes_.count() : std::max(1, lanes_.count() / 2);
}

void Engine::run_lanes(const std::function<void(int)>& work, const std::function<void()>& on_failure) {
  const int computing = computing_lanes();
  lanes_.run(
      [&](int lane) {
        if (lane < computing) return work(lane);
        enter(lane, Stage::imbalance);
      },
      on_failure);
}

bool Engine::can_use(Condition condition) {
  const bool two_cores = lanes_.count() > 1 || usable_cores() > 1;
  switch (condition) {
    case Condition::usual: return true;
    case Condition::samples_ready: return !options_.dataset->in_memory() && *options_.job.data.prefetch_threads > 0;
    case Condition::half_lanes: return lanes_.count() > 1;
    case Condition::cores_busy:
    case Condition::memory_busy:
      if (!two_cores || options_.job.budget.memory > 0 || (!busy_ && !has_memory_for_threads())) return false;
      try {
        if (!busy_) busy_ = std::make_unique<BusyThreads>(std::max(1, lanes_.count() / 2));
      } catch (const std::exception&) {  // the machine has no thread or no memory left
        return false;
      }
      return true;
  }
  return false;
}

bool Engine::use(Condition condition) {
  condition_ = condition;
  return condition != Condition::samples_ready || wait_for_samples();
}

bool Engine::wait_for_samples() {
  const auto expected = prefetched_.find(state_.step.value);
  if (expected == prefetched_.end()) return false;  // nothing was requested yet
  const auto requests = requests_of(next_range(), batch_size(state_.step), expected->second);
  enter_all(Stage::data_wait);
  const bool loaded = options_.prefetcher->wait_for(requests, kSamplesSeconds);
  enter_all(Stage::loop);
  return loaded;
}

}  // namespace sinew::train
