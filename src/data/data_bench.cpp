// Measures how fast datasets open and load. SINEW_DATA names a folder with fashion-mnist/ and tabular/; benchmarks
// whose files are missing are skipped.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include "data/data.h"
#include "data/rows.h"
#include "data/table.h"

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
  const Permutation order = epoch_order(0, 0, dataset->size(Split::train));
  int64_t position = 0;
  for (auto _ : state) {
    std::vector<int64_t> samples(static_cast<size_t>(state.range(0)));
    for (int64_t& sample : samples) sample = order[position++ % 60000];
    benchmark::DoNotOptimize(dataset->load(Split::train, samples, {0, 0, true}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_LoadFashionMnist)->Arg(16)->Arg(256);

// A table that resembles real measurements: numbers with a few digits, and two columns of words.
std::string measurements(size_t bytes) {
  RandomStream draws(random_key({1}));
  std::string text = "a,b,c,d,e,f,g,h,kind,place,y\n";
  const std::string words[] = {"red", "green", "blue", "violet"};
  char line[256];
  while (text.size() < bytes) {
    const int size =
        std::snprintf(line, sizeof line, "%.2f,%.3f,%d,%.4f,%.2f,%d,%.1f,%.6f,%s,%s,%d\n", draws.uniform(0, 100),
                      draws.uniform(-5, 5), static_cast<int>(draws.below(1000)), draws.uniform(), draws.uniform(0, 9),
                      static_cast<int>(draws.below(60)), draws.uniform(0, 1000), draws.uniform(),
                      words[draws.below(4)].c_str(), words[draws.below(4)].c_str(), static_cast<int>(draws.below(2)));
    text.append(line, static_cast<size_t>(size));
  }
  return text;
}

void BM_ReadTable(benchmark::State& state) {
  const std::string text = measurements(32 << 20);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        read_table(text, "bench.csv", TableRequest{}, [](const std::string&) { return CellWish{}; }));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_ReadTable)->Unit(benchmark::kMillisecond);

void BM_SplitRows(benchmark::State& state) {
  const std::string text = measurements(32 << 20);
  for (auto _ : state) {
    const std::string name = "bench.csv";
    const auto reader = read_csv(text, name, ',');
    Row row;
    size_t fields = 0;
    while (reader->next(row)) fields += row.fields.size();
    benchmark::DoNotOptimize(fields);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_SplitRows)->Unit(benchmark::kMillisecond);

void BM_OpenDiamonds(benchmark::State& state) {
  spec::DataOptions options;
  options.train.path = under("tabular/diamonds.csv");
  options.columns.target = "price";
  if (!options.train.given()) return state.SkipWithError("no SINEW_DATA/tabular");
  for (auto _ : state) benchmark::DoNotOptimize(open_dataset(options, 0));
}
BENCHMARK(BM_OpenDiamonds)->Unit(benchmark::kMillisecond);

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
