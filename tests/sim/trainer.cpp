#include "trainer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fiber.h"
#include "rundir/rundir.h"

namespace sinew::sim {
namespace {

constexpr double kBetweenSteps = 0.005;  // longest time of the step thread's own work in a step

// Derives a loss from the result of a collective, so that every member gets the same loss.
double loss_of(const group::Reduced& reduced) {
  return static_cast<double>(digest_of(reduced.small).low % 1000) / 1000;
}

}  // namespace

Trainer::Trainer(Scene& scene, int64_t pid, Lanes& lanes) : scene_(scene), pid_(pid), lanes_(lanes) {}

int64_t Trainer::batch_size(Step step) const {
  return state_.control.batch_size(step, scene_.plan.job.trainer.batch_size);
}

loop::StepResult Trainer::step(double lr, bool, std::string control_message) {
  Fiber::current()->sleep(scene_.world.random.uniform(0, kBetweenSteps));
  const int64_t step = state_.step.value;
  const Control control{lr, static_cast<double>(batch_size(state_.step))};
  const uint64_t input = control.with(numbers_);
  auto rows = group::simulation::blank(scene_.job.numbers.shape(step).lengths);
  const LeafOf leaf = [&](int64_t shard) { return scene_.job.numbers.leaf(step, shard, input); };
  const group::Reduced reduced = lanes_.collective(step, control_message, leaf, rows);
  const uint64_t after = group::simulation::Job::next_state(input, rows, reduced);
  origin = scene_.judge.commits({pid_, *origin, step, numbers_, after, control, rows, reduced, state_.control});
  numbers_ = after;

  const int64_t size = scene_.plan.data.train_size;
  const data::StepRange range = data::step_range(state_.cursor, size, batch_size(state_.step), false);
  state_.cursor = data::after(range, size, batch_size(state_.step), false);
  state_.samples += range.count;
  state_.step = state_.step.next();
  loop::StepResult result;
  result.loss = loss_of(reduced);
  result.weight = result.loss_sum = 1;
  result.samples = result.seen = range.count;
  result.control_message = reduced.control_message;
  return result;
}

loop::EvaluationResult Trainer::evaluate(data::Split) {
  Fiber::current()->sleep(scene_.world.random.uniform(0, kBetweenSteps));
  const int64_t number = scene_.job.evaluation_at(state_.step);
  if (alone_) return {.metrics = {{"loss", loss_of(scene_.job.numbers.expected(number, numbers_).reduced)}}};
  const LeafOf leaf = [&](int64_t shard) { return scene_.job.numbers.leaf(number, shard, numbers_); };
  std::vector<std::vector<float>> no_rows;
  const group::Reduced reduced = lanes_.collective(number, "", leaf, no_rows);
  scene_.judge.evaluates(pid_, origin->attempt, number, numbers_, reduced);
  return {.metrics = {{"loss", loss_of(reduced)}}};
}

Digest Trainer::digest() {
  const Digest found = {numbers_, digest_of(loop::counts_text(state_) + loop::decisions_text(state_)).low};
  if (origin) scene_.judge.digest(origin->attempt, state_.step.value, found);
  return found;
}

checkpoint::OwnedSnapshot Trainer::snapshot(const loop::StateFacts& facts) {
  checkpoint::OwnedSnapshot owned;
  owned.step = state_.step;
  owned.digest = digest();
  nlohmann::json document = loop::state_document(state_, facts);
  document["numbers"] = numbers_;
  if (origin) document["origin"] = {origin->attempt, origin->history};
  owned.state_json = document.dump();
  Buffer bytes(sizeof numbers_);
  std::copy_n(reinterpret_cast<const std::byte*>(&numbers_), sizeof numbers_, bytes.data());
  owned.parts["model"].emplace_back(checkpoint::TensorEntry{.name = "numbers", .dtype = DType::i64, .shape = {1}},
                                    std::move(bytes));
  return owned;
}

loop::StateFacts Trainer::restore(const checkpoint::Loaded& loaded) {
  const auto document = nlohmann::json::parse(loaded.state_json);
  loop::StateFacts facts;
  loop::read_document(document, state_, facts);
  numbers_ = document.at("numbers");
  if (document.contains("origin")) origin = {document.at("origin").at(0), document.at("origin").at(1)};
  return facts;
}

std::string Trainer::write_artifact(Disk& disk) {
  const std::string directory = rundir::file_in(scene_.run_directory, rundir::kModel);
  disk.make_directories(directory);
  write_durably(disk, directory + "/model.json", std::to_string(numbers_));
  return "";
}

}  // namespace sinew::sim
