#include "train/machine_probe.h"

#include <atomic>
#include <functional>

#include "train/lanes.h"
#include "train/train.h"

namespace sinew::train {
namespace {

constexpr double kProbeSeconds = 0.3;
constexpr int64_t kProductSize = 512;           // of square matrices: three of them fit into the cache of a core
constexpr int64_t kCopiedNumbers = 4 << 20;     // 16 MiB of float32: more than the cache of a core
constexpr int64_t kTinyCallsBetweenLooks = 64;  // so that looking at the clock costs nothing

// How often all lanes together can do this in a second.
double rate_of(Lanes& lanes, Clock& clock, const std::function<void(int)>& work) {
  lanes.run(work);  // the first time is slower: pages and code are new
  std::atomic<int64_t> done = 0;
  const double begin = clock.monotonic_seconds();
  lanes.run([&](int lane) {
    do {
      work(lane);
      ++done;
    } while (clock.monotonic_seconds() - begin < kProbeSeconds);
  });
  return static_cast<double>(done) / std::max(1e-9, clock.monotonic_seconds() - begin);
}

}  // namespace

MachineProbe probe_machine(int64_t lanes, const std::string& precision, Clock& clock) {
  const torch::NoGradGuard no_gradient;
  const auto type = precision == "bf16" ? torch::kBFloat16 : torch::kFloat32;
  const auto count = static_cast<size_t>(std::max<int64_t>(1, lanes));
  std::vector<torch::Tensor> left(count), right(count), made(count);
  Lanes all(static_cast<int>(count));
  const auto prepare = [&](const std::function<torch::Tensor()>& make) {
    for (auto* tensors : {&left, &right, &made}) {
      for (torch::Tensor& tensor : *tensors) tensor = make();
    }
  };
  MachineProbe probe;
  prepare([&] { return torch::full({kProductSize, kProductSize}, 0.5, torch::dtype(type)); });
  const double products = rate_of(all, clock, [&](int lane) {
    const torch::NoGradGuard here;  // each thread has its own
    const auto at = static_cast<size_t>(lane);
    at::mm_out(made[at], left[at], right[at]);
  });
  probe.flops = products * 2 * static_cast<double>(kProductSize * kProductSize * kProductSize);
  prepare([&] { return torch::zeros({kCopiedNumbers}); });
  const double copies = rate_of(all, clock, [&](int lane) {
    const torch::NoGradGuard here;
    const auto at = static_cast<size_t>(lane);
    made[at].copy_(left[at]);
  });
  probe.bandwidth = copies * 2 * static_cast<double>(kCopiedNumbers * static_cast<int64_t>(sizeof(float)));
  Lanes one(1);
  const torch::Tensor tiny = torch::zeros({1});
  const double calls = rate_of(one, clock, [&](int) {
    for (int64_t i = 0; i < kTinyCallsBetweenLooks; ++i) tiny.add(tiny);
  });
  probe.call_seconds = 1 / (calls * static_cast<double>(kTinyCallsBetweenLooks));
  return probe;
}

}  // namespace sinew::train
