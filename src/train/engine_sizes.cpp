// Finds before the first step how many samples the shards of a training and of its evaluations have.
#include <set>

#include "base/error.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

// Returns the numbers of samples of all shards. An epoch in which trainer.batch_size_ramp changes the size has a last
// batch of its own, so the function walks through the steps of the ramp, but not for ever.
std::set<int64_t> shard_sizes(const spec::TrainerOptions& trainer, const loop::BatchSizes& sizes, int64_t train_size) {
  constexpr int64_t kMostSteps = 1'000'000;
  std::set<int64_t> found;
  if (train_size == 0) return found;
  const int64_t full = trainer.batch_size, rest = train_size % full;
  std::set<std::pair<int64_t, int64_t>> batches;  // how many samples a batch has, and how many it could have
  if (full <= train_size) batches.emplace(full, full);
  if (rest > 0 && !trainer.drop_last) batches.emplace(rest, full);
  data::Cursor cursor;
  std::optional<int64_t> last_epoch;
  for (int64_t step = 0; !trainer.batch_size_ramp.empty() && step < kMostSteps; ++step) {
    const int64_t size = sizes.at(step);
    const data::StepRange range = data::step_range(cursor, train_size, size, trainer.drop_last);
    if (!last_epoch && sizes.ramp_is_over(step)) last_epoch = range.epoch;
    if (last_epoch && range.epoch > *last_epoch) break;
    batches.emplace(range.count, size);
    cursor = data::after(range, train_size, size, trainer.drop_last);
  }
  for (const auto& [count, size] : batches) {
    for (const auto& [first, last] : data::split_into_shards(count, size, *trainer.shards)) {
      if (first < last) found.insert(last - first);
    }
  }
  return found;
}

}  // namespace

void Engine::check_sizes() const {
  const auto check = [&](int64_t samples, const std::string& what, const char* hint) {
    const std::string problem = replicas_.front()->batch_problem(samples);
    if (problem.empty()) return;
    throw Error("MODEL_INPUT_MISMATCH",
                what + " of " + std::to_string(samples) + " samples do not fit the model: " + problem, hint);
  };
  for (const int64_t samples : shard_sizes(options_.job.trainer, batch_sizes_, info_.train_size))
    check(samples, "shards",
          "choose another trainer.batch_size or trainer.shards (a shard is their quotient; trainer.drop_last: true "
          "leaves out the smaller batch at the end of an epoch), or export the model for this size (dynamic_shapes)");
  for (const data::Split split : {data::Split::val, data::Split::test}) {
    std::set<int64_t> sizes;
    for (const data::ShardRequest& piece : pieces_of(split)) sizes.insert(piece.count);
    for (const int64_t samples : sizes)
      check(samples, "parts of the " + to_string(split) + " data",
            "choose another trainer.eval_batch_size (a part is its quotient with trainer.shards; the last part has the "
            "rest), or export the model for this size (dynamic_shapes)");
  }
}

}  // namespace sinew::train
