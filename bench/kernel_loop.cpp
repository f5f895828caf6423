// Races the kernel that takes the place of libtorch's (model/vision_kernels.h) against it, on one thread, in turns.
//
//   kernel_loop ROUNDS
//
// Prints a line for each kernel and shape: name, microseconds of libtorch's kernel, microseconds of Sinew's. Each is
// the median of the rounds.
#include <ATen/Parallel.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/model.h"

namespace {

double microseconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void race(const std::string& name, int rounds, const std::function<void()>& libtorch,
          const std::function<void()>& own) {
  std::vector<double> theirs, ours;
  libtorch();
  own();
  for (int round = 0; round < rounds; ++round) {
    theirs.push_back(microseconds(libtorch));
    ours.push_back(microseconds(own));
  }
  std::printf("%s\t%.1f\t%.1f\n", name.c_str(), median(theirs), median(ours));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = std::max(3, argc > 1 ? std::atoi(argv[1]) : 100);
  at::set_num_threads(1);
  sinew::model::install_keyed_random();
  const sinew::model::RandomScope random(sinew::random_key({1}));
  const torch::NoGradGuard no_gradient;
  for (const auto& [type, type_name] : {std::pair(torch::kFloat32, "fp32"), std::pair(torch::kBFloat16, "bf16")}) {
    for (const auto& [channels, side] : {std::pair<int64_t, int64_t>(32, 28), std::pair<int64_t, int64_t>(64, 14)}) {
      const torch::Tensor input = torch::relu(torch::randn({16, channels, side, side})).to(type);
      race(
          std::string("max pool 2x2 ") + type_name + " 16x" + std::to_string(channels) + "x" + std::to_string(side) +
              "x" + std::to_string(side),
          rounds,
          [&, &i = input] {
            at::cpu::max_pool2d_with_indices(i, {2, 2}, {2, 2});
          },
          [&, &i = input] {
            at::max_pool2d_with_indices(i, {2, 2}, {2, 2});
          });
    }
  }
  return 0;
}
