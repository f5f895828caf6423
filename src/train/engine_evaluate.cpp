// Runs every sample of a split through the model. evaluate() computes metrics; the reducer adds their parts as it adds
// the shards of a training step, in the order of a fixed binary tree (base/tree.h). outputs() passes the model's
// outputs to a callback.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/tree.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

// Returns the key of the random operators in one part of an evaluation. The key is the same in every evaluation, so
// that two evaluations differ only if their models differ.
RandomKey piece_key(const TrainingState& state, const data::ShardRequest& piece) {
  return derive(random_key({state.seed, static_cast<uint64_t>(piece.split), static_cast<uint64_t>(piece.first)}),
                "evaluate");
}

std::string text_of_number(double value) {
  std::string text;
  append_json_number(text, value);
  return text;
}

double number_of_text(const std::string& text) {
  const auto value = number_in_json(nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false));
  if (!value)
    throw Error("TRAIN_CONTROL_MESSAGE_INVALID", "the leader's metric cannot be used: '" + text + "' is no number",
                "run the same version of sinew on all members");
  return *value;
}

}  // namespace

std::vector<data::ShardRequest> Engine::pieces_of(data::Split split) const {
  const int64_t size = options_.dataset->size(split);
  const auto& trainer = options_.job.trainer;
  const int64_t batch_size = trainer.eval_batch_size > 0 ? trainer.eval_batch_size : trainer.batch_size;
  const int64_t piece = data::evaluation_part(size, batch_size, shards(), kMaxTreeLeaves);
  std::vector<data::ShardRequest> pieces;
  for (int64_t first = 0; first < size; first += piece)
    pieces.push_back({split, 0, first, std::min(piece, size - first), true});
  return pieces;
}

std::optional<Contribution> Engine::evaluate_shard(int lane, const data::ShardRequest& request, bool again) {
  enter(lane, Stage::data_wait);
  data::Batch batch = options_.prefetcher->take(request);
  enter(lane, Stage::evaluation);
  if (!again) record_skipped(batch.skipped);
  Contribution leaf;
  leaf.not_decoded = leave_out(request.split, batch);
  if (batch.count() == 0) return leaf.not_decoded.empty() ? std::nullopt : std::optional(std::move(leaf));
  const torch::NoGradGuard no_grad;
  const model::RandomScope random(piece_key(state_, request));  // a program may draw random numbers in evaluation too
  const torch::Tensor targets = to_target(batch);
  const torch::Tensor outputs = forward(lane, to_input(batch), targets);
  const Loss::Value loss = loss_(outputs, targets);
  evaluation_metrics_.count(outputs, targets, leaf);
  leaf.loss = loss.sum.item<double>();
  leaf.weight = loss.weight;
  leaf.samples = batch.count();
  return leaf;
}

// Computes the pieces of an evaluation together with the other members.
Reducer::Reduced Engine::reduce_evaluation(const std::vector<data::ShardRequest>& pieces) {
  const auto count = static_cast<int64_t>(pieces.size());
  if (!options_.dataset->in_memory()) {
    std::vector<data::ShardRequest> requests;
    for (int64_t i = 0; i < count; ++i) {
      if (options_.reducer->expects(ShardIndex(i), count)) requests.push_back(pieces[static_cast<size_t>(i)]);
    }
    forget_prefetched();
    options_.prefetcher->prefetch(requests);
  }
  skipped_ = {};
  not_decoded_here_.clear();
  const bool compares = options_.reducer->compares();
  const Audit audit = audit_of_evaluation(count);
  options_.reducer->begin(count, {}, "", std::nullopt, compares ? audit : Audit(),
                          {Purpose::Kind::evaluation, state_.step});
  const int64_t step = state_.step.value;
  const auto work_on_lane = [&](int lane) {
    report_work(lane, {Work::Kind::reducing, step});
    enter(lane, Stage::reduction);
    replicas_[static_cast<size_t>(lane)]->set_training(false);
    reset_buffers(lane);
    while (const auto task = options_.reducer->next_shard()) {
      if (too_late_ && too_late_()) throw loop::OutOfTime();
      const data::ShardRequest& samples = pieces[static_cast<size_t>(task->shard.value)];
      run_shard(lane, {Work::Kind::evaluating, step, task->shard.value, 0, samples.first, samples.count}, *task,
                !compares && audit.contains(*task), [&](bool again) { return evaluate_shard(lane, samples, again); });
    }
    report_work(lane, {});
    enter(lane, Stage::imbalance);
  };
  lanes_.run(work_on_lane, [this] { options_.reducer->give_up(); });
  enter_all(Stage::evaluation);
  check_audits();
  Reducer::Reduced reduced = options_.reducer->reduced();
  if (!options_.dataset->in_memory()) options_.prefetcher->clear();  // drops loaded parts that another worker computed
  return reduced;
}

std::vector<float> Engine::scores(data::Split split) {
  return undoing_left_out([&] { return std::move(evaluated(split).sums.scores); });
}

EvaluationResult Engine::evaluate(data::Split split, const std::function<bool()>& too_late) {
  too_late_ = too_late;
  const auto ends = [this](void*) {
    too_late_ = nullptr;
    if (!options_.dataset->in_memory()) options_.prefetcher->clear();
  };
  const std::unique_ptr<void, decltype(ends)> limited(too_late ? this : nullptr, ends);
  return undoing_left_out([&] { return make_evaluation(split); });
}

Reducer::Reduced Engine::evaluated(data::Split split) {
  if (bound_to_average_ != !state_.ema.empty()) bind_replicas(!state_.ema.empty());
  const std::vector<data::ShardRequest> pieces = pieces_of(split);
  Reducer::Reduced reduced = reduce_evaluation(pieces);
  while (!reduced.sums.not_decoded.empty() && !agree_to_leave_out(split, reduced.sums.not_decoded))
    reduced = reduce_evaluation(pieces);
  return reduced;
}

EvaluationResult Engine::make_evaluation(data::Split split) {
  Reducer::Reduced reduced = evaluated(split);
  report::Metrics metrics = evaluation_metrics_.finish(reduced.sums);
  // All members use the leader's value: the exponential comes from libm (see StepMessage::learning_rate), and the
  // digest covers the best value of a metric.
  if (const auto found = metrics.find("perplexity"); found != metrics.end())
    found->second = number_of_text(exchange({Purpose::Kind::evaluation, state_.step}, text_of_number(found->second)));
  return {.metrics = std::move(metrics),
          .confusion = evaluation_metrics_.confusion(reduced.sums),
          .thresholds = evaluation_metrics_.thresholds(reduced.sums),
          .threshold = evaluation_metrics_.threshold(),
          .samples = reduced.sums.samples,
          .skipped = std::exchange(skipped_, {}),
          .wrong = std::move(reduced.wrong),
          .left_out = std::exchange(left_out_, {}),
          .damaged_copies = std::exchange(damaged_copies_, {})};
}

std::string Engine::exchange(const Purpose& purpose, std::string own_message, std::optional<Mark> mark) {
  report_work(0, {Work::Kind::reducing, state_.step.value});
  enter_all(Stage::reduction);
  options_.reducer->begin(1, {}, std::move(own_message), mark, {}, purpose);
  while (const auto shard = options_.reducer->next_shard()) options_.reducer->deliver(*shard, std::nullopt);
  options_.reducer->reduce();
  enter_all(Stage::loop);
  return options_.reducer->reduced().control_message;
}

void Engine::outputs(data::Split split, const Take& take) {
  const std::vector<data::ShardRequest> pieces = pieces_of(split);
  forget_prefetched();
  if (!options_.dataset->in_memory()) options_.prefetcher->prefetch(pieces);
  if (bound_to_average_ != !state_.ema.empty()) bind_replicas(!state_.ema.empty());
  std::atomic<size_t> next{0};
  lanes_.run([&](int lane) {
    const torch::NoGradGuard no_grad;
    replicas_[static_cast<size_t>(lane)]->set_training(false);
    reset_buffers(lane);
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const data::Batch batch = options_.prefetcher->take(pieces[i]);
      const model::RandomScope random(piece_key(state_, pieces[i]));
      take(pieces[i], batch, batch.count() == 0 ? torch::Tensor() : forward(lane, to_input(batch)));
    }
  });
}

}  // namespace sinew::train
