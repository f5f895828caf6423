// Measures how long a user waits for a server whose store has many runs: for the list of runs, for an overlay of a
// hundred runs, and for MLflow's search. Also measures how many points per second the server accepts over HTTP. Some
// rows measure the same query on the store alone, without HTTP and JSON.
//
// SINEW_BENCH_RUNS: number of runs (default: 2,000), each with 50 metrics of 500 points. Loading them is a row, too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "http/http.h"
#include "registry/registry.h"
#include "store/store.h"
#include "web/web.h"

namespace sinew::web {
namespace {

constexpr int kMetrics = 50, kPoints = 500;

int64_t runs() {
  const char* given = std::getenv("SINEW_BENCH_RUNS");
  return given != nullptr ? std::atoll(given) : 2000;
}

std::string metric_name(int metric) {
  return "group" + std::to_string(metric % 5) + "/metric" + std::to_string(metric);
}

store::Batch run_batch(int64_t run) {
  const std::string id = "run" + std::to_string(run);
  store::Batch batch{{store::Create{{store::Kind::kRun, id}, "0", "run " + std::to_string(run)}}};
  for (int metric = 0; metric < kMetrics; ++metric) {
    store::AddPoints add{id, metric_name(metric), {}};
    for (int step = 0; step < kPoints; ++step) {
      add.points.push_back({step, 1'800'000'000'000 + step * 1000, std::sin(step * 0.01 + metric) + run * 1e-3});
    }
    batch.changes.push_back(std::move(add));
  }
  return batch;
}

// A server over a store with many runs, in the temporary directory. The first row that uses it fills the store.
struct FullServer {
  FullServer() {
    const std::string token = add_token(folder + "/tokens.json", "bench", Role::kAdmin);
    authorization = "Bearer " + token;
    Options options;
    options.store = &store;
    options.artifacts = &artifacts;
    options.tokens = folder + "/tokens.json";
    options.requests_per_second = 0;
    api = std::make_unique<Api>(options);
    http::ServerOptions http;
    http.threads = 2;
    http.max_body_bytes = 16 << 20;
    server = std::make_unique<http::Server>(http, api->handler(), api->admission());
    const double began = system_clock().monotonic_seconds();
    for (int64_t run = 0; run < runs(); ++run) (void)store.write(run_batch(run));
    load_seconds = system_clock().monotonic_seconds() - began;
  }
  ~FullServer() {
    server.reset();
    std::filesystem::remove_all(folder);
  }
  static std::string new_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sinew-bench-XXXXXX").string();
    return ::mkdtemp(name.data());
  }

  const std::string folder = new_folder();
  store::Store store{folder + "/store.db"};
  registry::Artifacts artifacts{folder + "/artifacts"};
  std::unique_ptr<Api> api;
  std::unique_ptr<http::Server> server;
  std::string authorization;
  double load_seconds = 0;
};
FullServer& full() {
  static FullServer one;
  return one;
}

void bulk_load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(&full());
  state.counters["points_per_second"] =
      static_cast<double>(runs() * kMetrics * kPoints) / std::max(1e-9, full().load_seconds);
}
BENCHMARK(bulk_load)->Iterations(1)->Unit(benchmark::kSecond);

// A client that keeps its connection, as a browser does.
class BenchClient {
 public:
  BenchClient() : client_(full().server->url(), {.max_body_bytes = 256 << 20}) {}
  http::Response ask(const std::string& method, const std::string& target, const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers["authorization"] = full().authorization;
    auto answer = client_.send(request, 120);
    if (!answer || answer->status != 200) std::abort();
    return *std::move(answer);
  }

 private:
  http::Client client_;
};

void ask(benchmark::State& state, const std::string& method, const std::string& target, const std::string& body = "") {
  BenchClient client;
  size_t bytes = 0;
  for (auto _ : state) bytes = client.ask(method, target, body).body.size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
std::string hundred_runs() {
  std::string list;
  for (int run = 0; run < 100; ++run) list += "&run=run" + std::to_string(run * std::max<int64_t>(1, runs() / 100));
  return list;
}

void list_all(benchmark::State& state) {
  ask(state, "GET", "/api/v1/runs?limit=10000");
}
void list_all_with_two_metrics(benchmark::State& state) {
  ask(state, "GET", "/api/v1/runs?limit=10000&key=group0/metric0&key=group1/metric1");
}
void overlay_of_100(benchmark::State& state) {
  ask(state, "GET", "/api/v1/overlay?key=group3/metric3&points=500" + hundred_runs());
}
void mlflow_search_of_100(benchmark::State& state) {
  ask(state, "POST", "/api/2.0/mlflow/runs/search",
      R"({"experiment_ids": ["0"], "filter": "metrics.`group3/metric3` > 0", "max_results": 100})");
}
void metrics_page(benchmark::State& state) {
  ask(state, "GET", "/metrics");
}
void store_list_all(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(full().store.list({store::Kind::kRun, {}, {}, false, false, 0, 10'000}));
  }
}
void store_overlay_of_100(benchmark::State& state) {
  std::vector<store::Series> series;
  for (int run = 0; run < 100; ++run) {
    series.push_back({"run" + std::to_string(run * std::max<int64_t>(1, runs() / 100)), metric_name(3)});
  }
  store::Window window;
  window.max_points = 500;
  for (auto _ : state) benchmark::DoNotOptimize(full().store.history(series, window));
}
BENCHMARK(list_all)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(store_list_all)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(list_all_with_two_metrics)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(overlay_of_100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(store_overlay_of_100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(mlflow_search_of_100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(metrics_page)->Unit(benchmark::kMillisecond)->UseRealTime();

// Writes points over HTTP, a thousand in each request. The row below writes one point in each request, over one
// connection for each thread.
void bulk_points(benchmark::State& state) {
  BenchClient client;
  int64_t step = 0;
  for (auto _ : state) {
    nlohmann::json list = nlohmann::json::array();
    for (int i = 0; i < 1000; ++i) list.push_back({++step, 1, 0.5});
    client.ask("POST", "/api/v1/runs/run0/points", nlohmann::json{{"series", {{"bulk", list}}}}.dump());
  }
  state.counters["points_per_second"] = benchmark::Counter(static_cast<double>(step), benchmark::Counter::kIsRate);
}
BENCHMARK(bulk_points)->Unit(benchmark::kMillisecond)->UseRealTime();

void single_points(benchmark::State& state) {
  BenchClient client;
  int64_t step = 0;
  for (auto _ : state) {
    client.ask(
        "POST", "/api/2.0/mlflow/runs/log-metric",
        R"({"run_id": "run1", "key": "single", "value": 1, "timestamp": 1, "step": )" + std::to_string(++step) + "}");
  }
  state.counters["points_per_second"] = benchmark::Counter(static_cast<double>(step), benchmark::Counter::kIsRate);
}
BENCHMARK(single_points)->Unit(benchmark::kMillisecond)->UseRealTime()->Threads(1)->Threads(8);

}  // namespace
}  // namespace sinew::web
