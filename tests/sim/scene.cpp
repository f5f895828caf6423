#include "scene.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::sim {
namespace {

constexpr int64_t kBatch = 64;

spec::Duration steps(uint64_t number) {
  return {static_cast<double>(number), spec::Duration::Unit::steps};
}

// Evaluations, checkpoints and lines of metrics are due every few steps, because a story has few steps.
loop::Plan random_plan(RandomStream& random, const TrainingJob& job) {
  loop::Plan plan;
  plan.job.name = "story";
  plan.job.trainer.max_duration = steps(static_cast<uint64_t>(job.steps));
  plan.job.trainer.batch_size = kBatch;
  plan.job.trainer.eval_interval = steps(4 + random.below(20));
  plan.job.optimizer.lr = 1;
  plan.job.checkpoint.interval = std::to_string(3 + random.below(8)) + "st";
  plan.job.checkpoint.keep = static_cast<int64_t>(1 + random.below(3));
  plan.job.checkpoint.keep_best = static_cast<int64_t>(random.below(3));
  plan.job.checkpoint.monitor = "val/loss";
  plan.job.logging.interval = steps(1 + random.below(6));
  plan.job.logging.tensorboard = false;
  plan.resolved_yaml = "name: story\n";
  plan.data.task = data::Task::regression;
  plan.data.train_size = 1000;
  plan.data.val_size = plan.data.test_size = 10;
  plan.data.digest = {1, 2};
  plan.model = "numbers";
  plan.shards = job.numbers.shape(0).shards;
  plan.lanes = 1;
  return plan;
}

}  // namespace

Scene::Scene(uint64_t seed) : world(seed), network(world), post(world), job(seed), judge(world, job) {
  plan = random_plan(world.random, job);
  shard_seconds = world.random.uniform(0.02, 0.2);
  frozen_parts = 1 + world.random.below(5);
}

cluster::CoordinatorOptions Scene::begin_coordinator(int64_t workers) {
  constexpr int64_t kNumbersOfACoordinator = 1'000'000;
  cluster::CoordinatorOptions options;
  options.cluster.wanted = workers;
  if (std::ranges::any_of(offices, [](const auto& one) { return one->process.alive(); }))
    options.cluster.settle_seconds = cluster::kCautiousSettleSeconds;
  options.term = files.coordinators++;
  options.confirm_seconds = cluster::kConfirmSeconds;
  options.at_least = Generation(options.term * kNumbersOfACoordinator);
  options.first_id = MemberId(options.term * kNumbersOfACoordinator);
  options.last_view = files.last_view;
  options.on_view = [this, term = options.term](const cluster::View& view) {
    judge.makes(term, view);
    files.last_view = view;
  };
  options.log = [this, term = options.term](const std::string& line) {
    world.say("coordinator " + std::to_string(term) + ": " + line);
  };
  return options;
}

std::shared_ptr<Office> Scene::listen(int64_t pid, const cluster::CoordinatorOptions& options) {
  if (files.coordinators - 1 > options.term) return nullptr;
  offices.push_back(std::make_shared<Office>(world, pid, options, files));
  return post.office = offices.back();
}

}  // namespace sinew::sim
