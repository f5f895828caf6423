// Measures how many MB/s saving (with fsync), loading and verifying reach, for a state of 50 MB: 20 parameters with two
// moments each.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {
namespace {

constexpr int64_t kParameters = 20, kElements = 50'000'000 / (3 * kParameters * 4);

class State {
 public:
  State() : bytes_(static_cast<size_t>(kElements) * 4) {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    for (int64_t i = 0; i < kParameters; ++i) {
      const std::string name = "layer" + std::to_string(i);
      snapshot_.parts["model"].push_back({name, DType::f32, {kElements}, bytes_});
      for (const char* moment : {".m", ".v"})
        snapshot_.parts["optimizer"].push_back({name + moment, DType::f32, {kElements}, bytes_});
    }
    snapshot_.state_json = "{}";
    std::string name = (std::filesystem::temp_directory_path() / "sinew-bench-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~State() { std::filesystem::remove_all(root_); }
  std::string save_as(int64_t step) {
    snapshot_.step = Step(step);
    return save(system_disk(), root_, snapshot_, 1.0);
  }

 private:
  std::vector<std::byte> bytes_;
  Snapshot snapshot_;
  std::string root_;
};

void count(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * kParameters * kElements * 12);
}

void Save(benchmark::State& state) {
  State sample;
  int64_t step = 0;
  for (auto _ : state) {
    const std::string directory = sample.save_as(++step);
    state.PauseTiming();
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  count(state);
}
BENCHMARK(Save)->Unit(benchmark::kMillisecond)->UseRealTime();

void Load(benchmark::State& state) {
  State sample;
  const std::string directory = sample.save_as(1);
  for (auto _ : state) benchmark::DoNotOptimize(load(system_disk(), directory));
  count(state);
}
BENCHMARK(Load)->Unit(benchmark::kMillisecond)->UseRealTime();

void Verify(benchmark::State& state) {
  State sample;
  const std::string directory = sample.save_as(1);
  for (auto _ : state) benchmark::DoNotOptimize(verify(system_disk(), directory, state.range(0) != 0));
  count(state);
}
BENCHMARK(Verify)->Arg(0)->ArgName("past_cache")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Verify)->Arg(1)->ArgName("past_cache")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sinew::checkpoint
