// Files come from SINEW_DATA (a folder with fashion-mnist/ and tabular/); what is missing is skipped.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include "data/data.h"

namespace sinew::data {
namespace {

std::string under(const std::string& name) {
  const char* root = std::getenv("SINEW_DATA");
  const std::string path = (root == nullptr ? "." : root) + ("/" + name);
  return std::filesystem::exists(path) ? path : "";
}

spec::DataOptions fashion() {
  spec::DataOptions options;
  options.format = "idx";
  options.train.path = options.test.path = under("fashion-mnist");
  return options;
}

void BM_OpenFashionMnist(benchmark::State& state) {
  if (!fashion().train.given()) return state.SkipWithError("no SINEW_DATA/fashion-mnist");
  for (auto _ : state) benchmark::DoNotOptimize(open_dataset(fashion(), 0));
}
BENCHMARK(BM_OpenFashionMnist)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_LoadFashionMnist(benchmark::State& state) {
  if (!fashion().train.given()) return state.SkipWithError("no SINEW_DATA/fashion-mnist");
  const auto dataset = open_dataset(fashion(), 0);
  const Permutation order = epoch_order(0, 0, dataset->size(Part::train));
  int64_t position = 0;
  for (auto _ : state) {
    std::vector<int64_t> samples(static_cast<size_t>(state.range(0)));
    for (int64_t& sample : samples) sample = order[position++ % 60000];
    benchmark::DoNotOptimize(dataset->load(Part::train, samples, {0, 0, true}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_LoadFashionMnist)->Arg(16)->Arg(256);

void BM_EpochOrder(benchmark::State& state) {
  const Permutation order = epoch_order(0, 0, state.range(0));
  int64_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(order[position]);
    position = (position + 1) % state.range(0);
  }
}
BENCHMARK(BM_EpochOrder)->Arg(60000)->Arg(70000)->Arg(100'000'000);

}  // namespace
}  // namespace sinew::data
