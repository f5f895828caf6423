// Measures the baseline of the benchmarks: a training loop with libtorch alone. All its tensors are in memory from the
// start.
//
//   bare_loop MODEL BATCH SHARDS LANES SECONDS      MODEL: mlp | cnn | resnet | csv
//
// A step does the same work as in Sinew, without Sinew's other services. The program splits the batch into SHARDS parts
// and runs LANES threads with one OpenMP thread each. It adds the gradients of the parts in tree order, divides the
// sums, and updates with torch's fused AdamW. It prints samples per second, without the first 30 % of the time. Data is
// random, because its values do not affect the speed.
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <omp.h>
#include <torch/torch.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using torch::Tensor;
namespace nn = torch::nn;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride, bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(bias));
}

struct Block : nn::Module {
  Block(int64_t in, int64_t out, int64_t stride)
      : conv1(convolution(in, out, 3, stride)), conv2(convolution(out, out, 3, 1)), bn1(out), bn2(out) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("bn1", bn1);
    register_module("bn2", bn2);
    if (stride != 1 || in != out)
      shortcut = register_module("shortcut", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + (shortcut.is_empty() ? x : shortcut->forward(x)));
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  nn::Sequential shortcut{nullptr};
};

nn::Sequential make_net(const std::string& model) {
  if (model == "mlp") return nn::Sequential(nn::Flatten(), nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10));
  if (model == "csv")
    return nn::Sequential(nn::Linear(16, 64), nn::ReLU(), nn::Linear(64, 64), nn::ReLU(), nn::Linear(64, 4));
  if (model == "cnn") {
    return nn::Sequential(convolution(1, 32, 3, 1, true), nn::ReLU(), nn::MaxPool2d(2), convolution(32, 64, 3, 1, true),
                          nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(3136, 10));
  }
  TORCH_CHECK(model == "resnet", "no model '", model, "'");
  nn::Sequential net(convolution(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  int64_t in = 64;
  for (const int64_t out : {64, 128, 256, 512}) {
    net->push_back(Block(in, out, out == 64 ? 1 : 2));
    net->push_back(Block(out, out, 1));
    in = out;
  }
  net->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(512, 10));
  return net;
}

Tensor flat(const Tensor& dense) {
  return dense.as_strided({dense.numel()}, {1});
}

void become_lane() {
  omp_set_num_threads(1);
  at::init_num_threads();
  at::set_num_threads(1);
}

class Loop {
 public:
  Loop(const std::string& model, int64_t batch, int64_t shards, int lanes)
      : batch_(batch), shards_(shards), lanes_(lanes), leaves_(static_cast<size_t>(shards)), everyone_(lanes) {
    const bool resnet = model == "resnet";
    format_ = resnet ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
    inputs_ = model == "csv" ? torch::randn({200'000, 16})
              : resnet       ? torch::randn({2'000, 3, 64, 64}).contiguous(format_)
                             : torch::randn({60'000, 1, 28, 28});
    targets_ = torch::randint(0, model == "csv" ? 4 : 10, {inputs_.size(0)}, torch::kLong);
    for (int lane = 0; lane < lanes; ++lane) {
      nets_.push_back(make_net(model));
      if (resnet) {
        for (Tensor& p : nets_.back()->parameters())
          if (p.dim() == 4) p.set_data(p.contiguous(format_));
      }
      if (lane == 0) continue;  // all replicas share the parameters of the first one
      auto mine = nets_.back()->parameters(), first = nets_[0]->parameters();
      for (size_t p = 0; p < mine.size(); ++p) mine[p].set_data(first[p].data());
    }
    for (const Tensor& p : nets_[0]->parameters()) {
      averages_.push_back(torch::zeros_like(p));
      squares_.push_back(torch::zeros_like(p));
    }
  }

  // Returns samples per second.
  double run(double seconds) {
    std::vector<std::thread> threads;
    double rate = 0;
    const auto begin = std::chrono::steady_clock::now();
    const auto now = [begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    for (int lane = 1; lane < lanes_; ++lane) threads.emplace_back([this, lane] { work(lane, [] {}); });
    int64_t counted = 0;
    double counted_from = -1;
    work(0, [&] {
      const double at = now();
      if (counted_from >= 0) counted += batch_;
      if (counted_from < 0 && at > 0.3 * seconds) counted_from = at;
      if (counted_from < 0 || at < seconds || counted == 0) return;
      rate = static_cast<double>(counted) / (at - counted_from);
      stop_ = true;
    });
    for (std::thread& thread : threads) thread.join();
    return rate;
  }

 private:
  template <typename AfterStep>
  void work(int lane, AfterStep after_step) {
    become_lane();
    const std::vector<Tensor> parameters = nets_[static_cast<size_t>(lane)]->parameters();
    std::vector<Tensor> steps;
    for (size_t p = 0; p < parameters.size(); ++p) steps.push_back(torch::zeros({}));
    for (int64_t step = 1; !stop_; ++step) {
      if (lane == 0) next_batch();
      everyone_.arrive_and_wait();
      for (int64_t shard = next_shard_++; shard < shards_; shard = next_shard_++) backward(lane, shard, parameters);
      everyone_.arrive_and_wait();
      update(lane, step, parameters, steps);
      if (lane == 0) after_step();
      everyone_.arrive_and_wait();
    }
  }

  void next_batch() {
    if (!order_.defined() || first_ + batch_ > order_.size(0)) {
      order_ = torch::randperm(inputs_.size(0));
      first_ = 0;
    }
    chosen_ = order_.slice(0, first_, first_ + batch_);
    first_ += batch_;
    next_shard_ = 0;
  }

  void backward(int lane, int64_t shard, const std::vector<Tensor>& parameters) {
    const Tensor mine = chosen_.slice(0, shard * batch_ / shards_, (shard + 1) * batch_ / shards_);
    Tensor input = inputs_.index_select(0, mine);
    if (input.dim() == 4) input = input.contiguous(format_);
    const Tensor output = nets_[static_cast<size_t>(lane)]->forward(input);
    const Tensor loss = at::cross_entropy_loss(output, targets_.index_select(0, mine), {}, at::Reduction::Sum);
    auto gradients = torch::autograd::grad({loss}, parameters);
    for (size_t p = 0; p < gradients.size(); ++p) {
      if (gradients[p].strides() != parameters[p].strides())
        gradients[p] = torch::empty_like(parameters[p]).copy_(gradients[p]);
    }
    leaves_[static_cast<size_t>(shard)] = std::move(gradients);
  }

  // Each lane updates a slice of each large parameter. The lanes take the small parameters in turn.
  void update(int lane, int64_t step, const std::vector<Tensor>& parameters, std::vector<Tensor>& steps) {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> values, gradients, averages, squares, counts;
    for (size_t p = 0; p < parameters.size(); ++p) {
      const int64_t n = parameters[p].numel();
      const bool small = n < 32'768;
      if (small && static_cast<int>(p) % lanes_ != lane) continue;
      const int64_t begin = small ? 0 : n * lane / lanes_, end = small ? n : n * (lane + 1) / lanes_;
      const auto part = [&](const Tensor& tensor) { return flat(tensor).slice(0, begin, end); };
      for (int64_t width = 1; width < shards_; width *= 2) {
        for (int64_t s = 0; s + width < shards_; s += 2 * width)
          part(leaves_[static_cast<size_t>(s)][p]).add_(part(leaves_[static_cast<size_t>(s + width)][p]));
      }
      values.push_back(part(parameters[p].detach()));
      gradients.push_back(part(leaves_[0][p]).div_(static_cast<double>(batch_)));
      averages.push_back(part(averages_[p]));
      squares.push_back(part(squares_[p]));
      counts.push_back(steps[p].fill_(static_cast<double>(step)));
    }
    at::_fused_adamw_(values, gradients, averages, squares, {}, counts, /*lr=*/1e-3, 0.9, 0.999, /*weight_decay=*/0.01,
                      1e-8, /*amsgrad=*/false, /*maximize=*/false);
  }

  const int64_t batch_, shards_;
  const int lanes_;
  torch::MemoryFormat format_;
  Tensor inputs_, targets_, order_, chosen_;
  std::vector<nn::Sequential> nets_;
  std::vector<Tensor> averages_, squares_;
  std::vector<std::vector<Tensor>> leaves_;  // [shard][parameter]
  int64_t first_ = 0;
  std::atomic<int64_t> next_shard_{0};
  std::atomic<bool> stop_{false};
  std::barrier<> everyone_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: bare_loop MODEL BATCH SHARDS LANES SECONDS\n");
    return 2;
  }
  try {
    Loop loop(argv[1], std::stoll(argv[2]), std::stoll(argv[3]), std::stoi(argv[4]));
    std::printf("%f\n", loop.run(std::stod(argv[5])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_loop: %s\n", error.what());
    return 1;
  }
}
