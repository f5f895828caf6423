// Measures how much time the Reporter takes from the thread that trains, and how fast metrics are read.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>

#include "base/disk.h"
#include "report/report.h"

namespace sinew::report {
namespace {

// A Reporter in a temporary directory. It prints nothing.
struct Quiet {
  Quiet() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-bench-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    ReporterOptions options;
    options.directory = directory;
    options.terminal = [](int) { return Terminal{.present = true, .moves_cursor = true, .columns = 80, .rows = 24}; };
    options.ledger = true;
    options.output = [](std::string_view) {};
    reporter = std::make_unique<Reporter>(options, system_disk(), system_clock());
  }
  ~Quiet() {
    reporter.reset();
    std::filesystem::remove_all(directory);
  }
  std::string directory;
  std::unique_ptr<Reporter> reporter;
};

Metrics ten_values() {
  Metrics values;
  for (int i = 0; i < 10; ++i) values["train/some_metric_" + std::to_string(i)] = 0.1234567890123 * (i + 1);
  return values;
}

void metrics_of_ten_values(benchmark::State& state) {
  Quiet quiet;
  const Metrics values = ten_values();
  int64_t step = 0;
  for (auto _ : state) {
    ++step;
    quiet.reporter->metrics(Step(step), step * 64, values);
  }
}
BENCHMARK(metrics_of_ten_values);

void progress(benchmark::State& state) {
  Quiet quiet;
  Progress progress;
  progress.total_steps = 1'000'000'000;
  progress.shown = {{"loss", 0.5}, {"val/accuracy", 0.5}};
  for (auto _ : state) {
    progress.step = progress.step.next();
    quiet.reporter->progress(progress);
  }
}
BENCHMARK(progress);

void ledger(benchmark::State& state) {
  Quiet quiet;
  int64_t step = 0;
  for (auto _ : state) quiet.reporter->ledger(Step(++step), {1, 2});
}
BENCHMARK(ledger);

void read_a_thousand_records(benchmark::State& state) {
  Quiet quiet;
  for (int64_t step = 1; step <= 1000; ++step) quiet.reporter->metrics(Step(step), step * 64, ten_values());
  quiet.reporter->flush();
  for (auto _ : state) benchmark::DoNotOptimize(read_metrics(quiet.directory + "/metrics.jsonl"));
}
BENCHMARK(read_a_thousand_records);

}  // namespace
}  // namespace sinew::report
