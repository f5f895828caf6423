// Measures a pass of the index over 2,000 unchanged runs and over 2,000 new runs, and how many bytes of blobs can be
// put in a second.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>

#include "registry/registry.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "sinew-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  fs::path path;
};

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Makes runs of 500 steps with some metrics.
void make_runs(const fs::path& root, int64_t runs, int64_t steps) {
  for (int64_t run = 0; run < runs; ++run) {
    const fs::path directory = root / ("job" + std::to_string(run % 10)) / ("20261121T031502Z-" + std::to_string(run));
    write(directory / "resolved.yaml", "name: job" + std::to_string(run % 10) + "\noptimizer: {lr: 0.1}\n");
    std::string lines;
    for (int64_t step = 1; step <= steps; ++step) {
      lines += "{\"step\":" + std::to_string(step) + ",\"samples\":64,\"time\":" + std::to_string(1763697600 + step);
      for (int metric = 0; metric < 10; ++metric)
        lines +=
            ",\"train/m" + std::to_string(metric) + "\":" + std::to_string(1.0 / static_cast<double>(step + metric));
      lines += "}\n";
    }
    write(directory / "metrics.jsonl", lines);
    write(directory / "report.json", "{\"status\":\"done\",\"exit_code\":0,\"started\":1763697600,\"seconds\":1}");
  }
}

void unchanged(benchmark::State& state) {
  Scratch scratch;
  make_runs(scratch.path / "runs", state.range(0), 3);
  store::Store store((scratch.path / "store.db").string());
  Index index(store, {.root = (scratch.path / "runs").string()});
  index.pass();
  for (auto _ : state) benchmark::DoNotOptimize(index.pass());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(unchanged)->Arg(2000)->Unit(benchmark::kMillisecond);

void fresh(benchmark::State& state) {
  Scratch scratch;
  make_runs(scratch.path / "runs", state.range(0), 500);
  int64_t points = 0, round = 0;
  for (auto _ : state) {
    store::Store store((scratch.path / ("store" + std::to_string(round++) + ".db")).string());
    Index index(store, {.root = (scratch.path / "runs").string()});
    points += index.pass().points;
  }
  state.SetItemsProcessed(points);
}
BENCHMARK(fresh)->Arg(100)->Unit(benchmark::kMillisecond);

void put(benchmark::State& state) {
  Scratch scratch;
  Artifacts artifacts((scratch.path / "artifacts").string());
  std::string bytes(static_cast<size_t>(state.range(0)), 'x');
  for (auto _ : state) {
    bytes[0] = static_cast<char>(state.iterations());
    auto pin = artifacts.pin();
    benchmark::DoNotOptimize(pin.put(bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(put)->Arg(1 << 24)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinew::registry
