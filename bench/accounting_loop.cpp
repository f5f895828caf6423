// Prints what the accounts of a run cost: how many nanoseconds a lane needs to say that it enters another stage
// (StageTimer), how many microseconds it takes to publish accounts.json in the folder that the word names, and how many
// microseconds longer a shard takes whose layers are counted. Each is the median of many rounds.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/atomic_write.h"
#include "base/stage_timer.h"
#include "rundir/rundir.h"
#include "train/layer_count.h"

namespace {

using namespace sinew;

double seconds_of(const std::function<void()>& work) {
  const Clock& clock = system_clock();
  const double began = clock.monotonic_seconds();
  work();
  return clock.monotonic_seconds() - began;
}

double median_seconds(int rounds, const std::function<double()>& round) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) seconds.push_back(round());
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  return seconds[static_cast<size_t>(rounds / 2)];
}

double entry_seconds() {
  constexpr int kEntries = 20'000;
  StageTimer timer(2, system_clock().monotonic_seconds(), system_clock());
  return median_seconds(101, [&] {
    return seconds_of([&] {
             for (int i = 0; i < kEntries; ++i) timer.enter(1, i % 2 == 0 ? Stage::forward : Stage::backward);
           }) /
           kEntries;
  });
}

// As loop/ does it, with as many layers as there may be.
double publish_seconds(const std::string& folder) {
  StageTimer timer(2, system_clock().monotonic_seconds(), system_clock());
  return median_seconds(101, [&] {
    return seconds_of([&] {
      rundir::Outcome outcome;
      outcome.status = rundir::kRunning;
      outcome.time = timer.times();
      outcome.resources = resource_use();
      outcome.memory.emplace();
      outcome.model.emplace().layers.assign(rundir::ModelUse::kMostLayers + 1, {"blocks.0.attn.qkv", 8, 1e9, 1e6, 99});
      write_atomically(system_disk(), rundir::file_in(folder, rundir::kAccountsFile), rundir::outcome_json(outcome));
    });
  });
}

// A shard of the MLP 784-256-10 of bench/jobs.py: 8 samples.
double count_seconds() {
  const std::vector<model::NamedTensor> weights = {{"hidden.0.weight", torch::rand({256, 784}, torch::requires_grad())},
                                                   {"hidden.0.bias", torch::rand({256}, torch::requires_grad())},
                                                   {"output.weight", torch::rand({10, 256}, torch::requires_grad())},
                                                   {"output.bias", torch::rand({10}, torch::requires_grad())}};
  std::vector<torch::Tensor> leaves;
  for (const model::NamedTensor& weight : weights) leaves.push_back(weight.tensor);
  const torch::Tensor input = torch::rand({8, 784}), target = torch::arange(8);
  const auto shard = [&] {
    const torch::Tensor hidden = torch::relu(torch::linear(input, leaves[0], leaves[1]));
    const torch::Tensor loss = torch::cross_entropy_loss(torch::linear(hidden, leaves[2], leaves[3]), target);
    torch::autograd::grad({loss}, leaves);
  };
  const auto counted = [&] {
    train::LayerCount count(weights, {});
    count.observe(shard);
  };
  for (int i = 0; i < 50; ++i) shard();
  return median_seconds(301, [&] { return seconds_of(counted) - seconds_of(shard); });
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  model::use_one_thread();
  std::printf("%.2f %.2f %.2f\n", 1e9 * entry_seconds(), 1e6 * publish_seconds(words[1]), 1e6 * count_seconds());
}
