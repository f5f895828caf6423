// What the store does in a second, beside what SQLite or PostgreSQL do bare, on one disk in one run. Each figure is of
// one go: a row's time is that of all it did, `per_second` and `syncs_each` are what to look at.
//
// SINEW_BENCH_DIR: where the files go (default: the temporary directory); SINEW_BENCH_RUNS: runs of the big store
// (2,000).
#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "store/postgres_server.h"
#include "store/store.h"

namespace sinew::store {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string bench_file(const std::string& name) {
  const char* given = std::getenv("SINEW_BENCH_DIR");
  const std::string folder = given != nullptr ? given : std::filesystem::temp_directory_path().string();
  return folder + "/sinew-bench-" + std::to_string(::getpid()) + "-" + name;
}
void remove_store(const std::string& path) {
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
}

// Counts syncs of all processes forked from here.
struct Counts {
  std::atomic<int64_t> syncs = 0, done = 0, errors = 0;
};
Counts& counts() {
  static auto* shared =
      new (::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counts;
  return *shared;
}
int (*real_sync)(sqlite3_file*, int) = nullptr;
int counting_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
  static std::map<const sqlite3_io_methods*, sqlite3_io_methods> counting;  // the file and its WAL have different ones
  sqlite3_vfs* real = sqlite3_vfs_find("unix");
  const int code = real->xOpen(real, name, file, flags, out);
  if (code != SQLITE_OK || file->pMethods == nullptr) return code;
  real_sync = file->pMethods->xSync;
  sqlite3_io_methods& methods = counting.try_emplace(file->pMethods, *file->pMethods).first->second;
  methods.xSync = [](sqlite3_file* at, int how) {
    ++counts().syncs;
    return real_sync(at, how);
  };
  file->pMethods = &methods;
  return code;
}
void count_syncs() {
  static sqlite3_vfs vfs = *sqlite3_vfs_find("unix");
  vfs.zName = "counting";
  vfs.xOpen = counting_open;
  sqlite3_vfs_register(&vfs, 1);
  counts().syncs = counts().done = counts().errors = 0;
}

// `work(process)` in so many processes for some seconds; it says how much it has done through counts().
constexpr double kSeconds = 4;
void in_processes(benchmark::State& state, int processes, const std::function<void(int process, double until)>& work) {
  for (auto _ : state) {
    const double begin = seconds_now();
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      try {
        work(p, begin + kSeconds);
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ++counts().errors;
      }
      ::_exit(0);
    }
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    state.SetIterationTime(seconds_now() - begin);
  }
  const auto done = static_cast<double>(counts().done);
  state.counters["per_second"] = done / kSeconds;
  state.counters["syncs_each"] = done > 0 ? static_cast<double>(counts().syncs) / done : 0;
  state.counters["errors"] = static_cast<double>(counts().errors);
}

const std::string kParameters = R"({"lr":0.00123,"layers":3,"width":128,"dropout":0.1,"optimizer":"adamw"})";

// The floor: one row a trial, one transaction to ask and one to tell, WAL, synchronous=FULL.
void RawSqliteTrials(benchmark::State& state) {
  const std::string path = bench_file("raw.db");
  remove_store(path);
  sqlite3* made = nullptr;
  sqlite3_open(path.c_str(), &made);
  sqlite3_exec(made, "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT)", nullptr,
               nullptr, nullptr);
  sqlite3_close(made);
  count_syncs();
  in_processes(state, static_cast<int>(state.range(0)), [&](int, double until) {
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    sqlite3_busy_timeout(db, 30'000);
    sqlite3_exec(db, "PRAGMA synchronous=FULL", nullptr, nullptr, nullptr);
    sqlite3_stmt *ask = nullptr, *tell = nullptr;
    sqlite3_prepare_v2(db, "INSERT INTO t(a) VALUES (?1)", -1, &ask, nullptr);
    sqlite3_prepare_v2(db, "UPDATE t SET b = '0.123' WHERE id = ?1", -1, &tell, nullptr);
    while (seconds_now() < until) {
      bool well = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
      sqlite3_bind_text(ask, 1, kParameters.c_str(), -1, SQLITE_STATIC);
      well = sqlite3_step(ask) == SQLITE_DONE && well;
      sqlite3_reset(ask);
      const sqlite3_int64 id = sqlite3_last_insert_rowid(db);
      well = sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK && well;
      well = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK && well;
      sqlite3_bind_int64(tell, 1, id);
      well = sqlite3_step(tell) == SQLITE_DONE && well;
      sqlite3_reset(tell);
      well = sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK && well;
      well ? ++counts().done : ++counts().errors;
    }
  });
  remove_store(path);
}

void trials(benchmark::State& state, const std::string& where, bool fused) {
  {
    Store store(where);
    (void)store.write(Create{{Kind::kStudy, "s"}});
  }
  count_syncs();
  in_processes(state, static_cast<int>(state.range(0)), [&](int process, double until) {
    Store store(where);
    const std::string worker = std::to_string(process);
    auto trial = store.write(NewTrial{"s", worker, kParameters, 60});
    while (seconds_now() < until) {
      const Answer at = trial->answers.back();
      const Tell tell{"s", at.number, at.fence, TrialState::kDone, "0.123"};
      if (fused) {
        trial = store.write(Batch{{tell, NewTrial{"s", worker, kParameters, 60}}});
      } else {
        if (!store.write(tell).has_value()) ++counts().errors;
        trial = store.write(NewTrial{"s", worker, kParameters, 60});
      }
      trial.has_value() ? ++counts().done : ++counts().errors;
    }
  });
}

void SqliteTrials(benchmark::State& state) {
  const std::string path = bench_file("trials.db");
  remove_store(path);
  trials(state, path, false);
  remove_store(path);
}
void SqliteTrialsToldAndAskedAtOnce(benchmark::State& state) {
  const std::string path = bench_file("trials.db");
  remove_store(path);
  trials(state, path, true);
  remove_store(path);
}

PostgresServer& durable_server() {
  static PostgresServer server(true);
  return server;
}
void RawPostgresTrials(benchmark::State& state) {
  durable_server().execute(
      "DROP SCHEMA IF EXISTS raw CASCADE; CREATE SCHEMA raw; CREATE TABLE raw.t(id bigserial PRIMARY KEY, a text, b "
      "text)");
  counts().syncs = counts().done = counts().errors = 0;
  in_processes(state, static_cast<int>(state.range(0)), [&](int, double until) {
    PostgresLink link(durable_server().url("raw"), 30);
    link.script("SET client_min_messages = warning");
    while (seconds_now() < until) {
      int64_t id = 0;
      link.send("INSERT INTO t(a) VALUES (?1) RETURNING id", {std::string_view(kParameters)});
      link.finish([&](const Row& row) { id = row.integer(0); });
      link.send("UPDATE t SET b = '0.123' WHERE id = ?1", {id});
      link.finish();
      ++counts().done;
    }
  });
}
void PostgresTrials(benchmark::State& state) {
  durable_server().execute("DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench");
  trials(state, durable_server().url("bench"), false);
}
void PostgresTrialsToldAndAskedAtOnce(benchmark::State& state) {
  durable_server().execute("DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench");
  trials(state, durable_server().url("bench"), true);
}

// ---- metrics -------------------------------------------------------------------------------------------------------

constexpr int kSeries = 50, kPoints = 500;
int big_runs() {
  const char* given = std::getenv("SINEW_BENCH_RUNS");
  return given != nullptr ? std::atoi(given) : 2000;
}
std::string big_path() {
  return bench_file("big.db");
}

Batch one_run(int run) {
  const std::string id = "run-" + std::to_string(run);
  Batch batch{
      {Create{{Kind::kRun, id}, "e", id, "", {{"lr", "0.1"}, {"seed", std::to_string(run)}}, {{"user", "bench"}}}}};
  for (int series = 0; series < kSeries; ++series) {
    std::vector<Point> points(kPoints);
    for (int i = 0; i < kPoints; ++i) {
      points[static_cast<size_t>(i)] = {i * 10, 1'800'000'000'000 + i * 1003,
                                        std::exp(-0.01 * i) + 0.001 * ((run * 31 + series * 7 + i * 13) % 97)};
    }
    batch.changes.emplace_back(AddPoints{id, "metric/" + std::to_string(series), std::move(points)});
  }
  return batch;
}

// The floor: a row a point, one transaction a run.
void RawSqliteBulk(benchmark::State& state) {
  const std::string path = bench_file("rows.db");
  const int runs = big_runs() / 10;
  for (auto _ : state) {
    remove_store(path);
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    sqlite3_exec(db,
                 "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE p(series INTEGER, step INTEGER, time "
                 "INTEGER, value REAL, "
                 "PRIMARY KEY(series, step, time)) WITHOUT ROWID",
                 nullptr, nullptr, nullptr);
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(db, "INSERT INTO p VALUES (?1, ?2, ?3, ?4)", -1, &insert, nullptr);
    const double begin = seconds_now();
    for (int run = 0; run < runs; ++run) {
      const Batch batch = one_run(run);
      sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      for (size_t series = 1; series < batch.changes.size(); ++series) {
        for (const Point& point : std::get<AddPoints>(batch.changes[series]).points) {
          sqlite3_bind_int64(insert, 1, run * 100 + static_cast<int>(series));
          sqlite3_bind_int64(insert, 2, point.step);
          sqlite3_bind_int64(insert, 3, point.time_ms);
          sqlite3_bind_double(insert, 4, point.value);
          sqlite3_step(insert);
          sqlite3_reset(insert);
        }
      }
      sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    }
    state.SetIterationTime(seconds_now() - begin);
    state.counters["per_second"] = runs * kSeries * kPoints / (seconds_now() - begin);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    remove_store(path);
  }
}

void SqliteBulk(benchmark::State& state) {
  for (auto _ : state) {
    remove_store(big_path());
    const double begin = seconds_now();
    Store store(big_path());
    (void)store.write(Create{{Kind::kExperiment, "e"}});
    for (int run = 0; run < big_runs(); ++run) {
      if (!store.write(one_run(run)).has_value()) state.SkipWithError("refused");
    }
    state.SetIterationTime(seconds_now() - begin);
    state.counters["per_second"] = static_cast<double>(big_runs()) * kSeries * kPoints / (seconds_now() - begin);
  }
  state.counters["bytes_a_point"] = static_cast<double>(std::filesystem::file_size(big_path())) /
                                    (static_cast<double>(big_runs()) * kSeries * kPoints);
}

// What is read of the store that SqliteBulk left.
void SqliteListAllRuns(benchmark::State& state) {
  Store store(big_path());
  size_t metrics = 0;
  for (auto _ : state) {
    const double begin = seconds_now();
    metrics = 0;
    for (const Record& run : store.list({.kind = Kind::kRun, .parent = "e", .limit = 1'000'000}))
      metrics += run.metrics.size();
    state.SetIterationTime(seconds_now() - begin);
  }
  state.counters["metrics"] = static_cast<double>(metrics);
}
void overlay(benchmark::State& state, int64_t most) {
  Store store(big_path());
  std::vector<Series> series;
  for (int run = 0; run < 100; ++run) {
    for (int i = 0; i < state.range(0); ++i)
      series.push_back({"run-" + std::to_string(run * big_runs() / 100), "metric/" + std::to_string(i)});
  }
  size_t points = 0;
  for (auto _ : state) {
    const double begin = seconds_now();
    points = 0;
    for (const auto& list : store.history(series, {.most = most})) points += list.size();
    state.SetIterationTime(seconds_now() - begin);
  }
  state.counters["points"] = static_cast<double>(points);
}
void SqliteOverlayOf100Runs(benchmark::State& state) {
  overlay(state, 0);
}
void SqliteOverlayOf100RunsDownsampled(benchmark::State& state) {
  overlay(state, 100);
}

// One point a write. Threads that wait for each, or one that submits and goes on.
void SqliteSinglePoints(benchmark::State& state) {
  const std::string path = bench_file("single.db");
  for (auto _ : state) {
    remove_store(path);
    count_syncs();
    Store store(path);
    (void)store.write(Create{{Kind::kExperiment, "e"}});
    (void)store.write(Create{{Kind::kRun, "r"}, "e"});
    const double begin = seconds_now();
    std::vector<std::thread> threads;
    const bool wait = state.range(1) != 0;
    for (int t = 0; t < state.range(0); ++t) {
      threads.emplace_back([&, t] {
        for (int64_t i = 0; seconds_now() < begin + kSeconds; ++i) {
          Batch batch{{AddPoints{"r", "metric/" + std::to_string((t * 7 + i) % kSeries), {{i, i, 0.5}}}}};
          if (wait) {
            store.write(batch).has_value() ? ++counts().done : ++counts().errors;
          } else {
            store.submit(std::move(batch), [](const Outcome& outcome, const std::exception_ptr&) {
              outcome.has_value() ? ++counts().done : ++counts().errors;
            });
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    const double passed = seconds_now() - begin;
    state.SetIterationTime(passed);
    state.counters["per_second"] = static_cast<double>(counts().done) / passed;
    state.counters["syncs_each"] = static_cast<double>(counts().syncs) / static_cast<double>(counts().done);
  }
  remove_store(path);
}

void RemoveFiles(benchmark::State& state) {
  for (auto _ : state) remove_store(big_path());
}

#define ONCE ->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond)
BENCHMARK(RawSqliteTrials)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(SqliteTrials)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(SqliteTrialsToldAndAskedAtOnce)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(RawPostgresTrials)->Arg(1)->Arg(4) ONCE;
BENCHMARK(PostgresTrials)->Arg(1)->Arg(4) ONCE;
BENCHMARK(PostgresTrialsToldAndAskedAtOnce)->Arg(1)->Arg(4) ONCE;
BENCHMARK(SqliteSinglePoints)->Args({1, 1})->Args({64, 1})->Args({1, 0})->Args({2, 0}) ONCE;
BENCHMARK(RawSqliteBulk) ONCE;
BENCHMARK(SqliteBulk) ONCE;
BENCHMARK(SqliteListAllRuns)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(SqliteOverlayOf100Runs)->Arg(1)->Arg(50)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(SqliteOverlayOf100RunsDownsampled)
    ->Arg(1)
    ->Arg(50)
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(RemoveFiles)->Iterations(1);

}  // namespace
}  // namespace sinew::store
