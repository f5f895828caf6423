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

Trainer::Trainer(Scene& scene, int64_t pid, Lanes& lanes)
    : scene_(scene), pid_(pid), lanes_(lanes), frozen_(scene.frozen_parts), first_seen_(frozen_) {}

void Trainer::change_memory(RandomStream& random) {
  frozen_[random.below(frozen_.size())] ^= uint64_t{1} << random.below(64);
}

uint64_t Trainer::deviation() const {
  uint64_t all = 0;
  for (size_t i = 0; i < frozen_.size(); ++i) all = random_key({all, frozen_[i]}).value;
  uint64_t none = 0;
  for (size_t i = 0; i < frozen_.size(); ++i) none = random_key({none, 0}).value;
  return all ^ none;
}

int64_t Trainer::batch_size(Step step) const {
  return state_.control.batch_size(step, scene_.plan.job.trainer.batch_size);
}

loop::StepResult Trainer::step(const loop::StepMessage& own, bool) {
  Fiber::current()->sleep(scene_.world.random.uniform(0, kBetweenSteps));
  const int64_t step = state_.step.value;
  Control control{.batch_size = static_cast<double>(batch_size(state_.step))};
  const uint64_t input = control.of_shards(numbers_);
  const size_t part = static_cast<size_t>(step) % frozen_.size();
  std::optional<Mark> mark;
  if (lanes_.has_peers()) {
    mark = Mark{.step = step, .part = static_cast<int64_t>(part), .digest = {numbers_, frozen_[part]}};
  } else if (frozen_[part] != first_seen_[part]) {
    throw loop::MemoryChanged("memory changed");
  }
  auto rows = group::simulation::blank(scene_.job.numbers.shape(step).lengths);
  const LeafOf leaf = [&](int64_t shard) { return scene_.job.numbers.leaf(step, shard, input ^ deviation()); };
  const group::Reduced reduced = lanes_.collective(step, to_text(own), mark, leaf, rows);
  const loop::StepMessage message = loop::step_message_of(reduced.control_message);
  control.learning_rate = message.learning_rate;
  const uint64_t after = group::simulation::Job::next_state(control.with(numbers_), rows, reduced);
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
  result.learning_rate = message.learning_rate;
  result.entries = message.entries;
  result.compare = reduced.compare;
  return result;
}

loop::EvaluationResult Trainer::evaluate(data::Split, const std::function<bool()>&) {
  Fiber::current()->sleep(scene_.world.random.uniform(0, kBetweenSteps));
  const int64_t number = scene_.job.evaluation_at(state_.step);
  if (alone_) return {.metrics = {{"loss", loss_of(scene_.job.numbers.expected(number, numbers_).reduced)}}};
  const LeafOf leaf = [&](int64_t shard) { return scene_.job.numbers.leaf(number, shard, numbers_ ^ deviation()); };
  std::vector<std::vector<float>> no_rows;
  const group::Reduced reduced = lanes_.collective(number, "", std::nullopt, leaf, no_rows);
  scene_.judge.evaluates(pid_, origin->attempt, number, numbers_, reduced);
  return {.metrics = {{"loss", loss_of(reduced)}}};
}

Digest Trainer::digest() {
  const Digest found = {numbers_ ^ deviation(),
                        digest_of(loop::counts_text(state_) + loop::decisions_text(state_)).low};
  if (origin && deviation() == 0) scene_.judge.digest(origin->attempt, state_.step.value, found);
  return found;
}

void Trainer::compare(Digest own) {
  const int64_t number = scene_.job.comparison_at(state_.step);
  const LeafOf leaf = [](int64_t) { return std::nullopt; };
  std::vector<std::vector<float>> no_rows;
  lanes_.collective(number, "", Mark{.step = state_.step.value, .digest = own}, leaf, no_rows);
  scene_.judge.compares(pid_, origin->attempt, number);
}

void Trainer::check_memory() {
  if (frozen_ != first_seen_) throw loop::MemoryChanged("memory changed");
}

checkpoint::OwnedSnapshot Trainer::snapshot(const loop::StateFacts& facts) {
  checkpoint::OwnedSnapshot owned;
  owned.step = state_.step;
  owned.digest = digest();
  nlohmann::json document = loop::state_document(state_, facts);
  document["numbers"] = numbers_;
  document["frozen"] = frozen_;
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
  frozen_ = first_seen_ = document.at("frozen").get<std::vector<uint64_t>>();
  if (document.contains("origin")) origin = {document.at("origin").at(0), document.at("origin").at(1)};
  return facts;
}

std::string Trainer::write_artifact(Disk& disk) {
  const std::string directory = rundir::file_in(scene_.run_directory, rundir::kModel);
  disk.make_directories(directory);
  write_durably(disk, directory + "/model.json", std::to_string(numbers_ ^ deviation()));
  return "";
}

}  // namespace sinew::sim
