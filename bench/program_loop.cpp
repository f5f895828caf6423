// Trains a .pt2 program in a plain loop. This measures the cost of running the program as a list of instructions,
// compared with eager Python (bench/programs.py has the same loop in Python).
//
//   program_loop FILE images|tokens BATCH SECONDS
//
// It uses one thread, cross-entropy and torch's fused AdamW. It prints steps per second, without the first 30 % of the
// time.
#include <ATen/ops/_fused_adamw.h>
#include <malloc.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "model/program_model.h"

int main(int count, char** words) {
  using namespace sinew;
  if (count != 5) {
    std::fprintf(stderr, "program_loop FILE images|tokens BATCH SECONDS\n");
    return 2;
  }
  // As in sinew-worker, the memory of one step stays available for the next.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  torch::set_num_threads(1);
  model::install_keyed_random();
  model::ProgramModel program(words[1]);
  const bool tokens = std::string(words[2]) == "tokens";
  const int64_t batch = std::atoll(words[3]);
  const double seconds = std::atof(words[4]);
  const torch::Tensor input = tokens ? torch::arange(batch * 64).remainder(65).view({batch, 64})
                                     : torch::linspace(-1, 1, batch * 784).view({batch, 1, 28, 28});
  const torch::Tensor target = tokens ? torch::arange(batch * 64).remainder(65) : torch::arange(batch).remainder(10);
  std::vector<torch::Tensor> leaves, means, squares, steps;
  for (const auto& parameter : program.parameters()) {
    leaves.push_back(parameter.tensor);
    means.push_back(torch::zeros_like(parameter.tensor));
    squares.push_back(torch::zeros_like(parameter.tensor));
    steps.push_back(torch::zeros({}));
  }
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  int64_t done = 0, first = -1;
  double from = 0;
  for (; elapsed() < seconds; ++done) {
    if (first < 0 && elapsed() > 0.3 * seconds) first = done, from = elapsed();
    const model::RandomScope random(random_key({static_cast<uint64_t>(done)}));
    const torch::Tensor output = program.run({input}).at(0).toTensor();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(output.dim() == 3 ? output.flatten(0, 1) : output, target);
    const auto gradients = torch::autograd::grad({loss}, leaves);
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& step : steps) step.add_(1);
    at::_fused_adamw_(leaves, gradients, means, squares, at::TensorList{}, steps, 1e-3, 0.9, 0.999, 0.01, 1e-8, false,
                      false);
  }
  std::printf("%.3f\n", static_cast<double>(done - first) / (elapsed() - from));
}
