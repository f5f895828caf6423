// Measures the throughput of the store, compared with plain SQLite and PostgreSQL on the same disk. Each row runs once;
// read its counters `per_second` and `syncs_each` instead of its time.
//
// SINEW_BENCH_DIR: directory for the files (default: the temporary directory). SINEW_BENCH_RUNS: number of runs in the
// big store (default: 2,000).
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

// Counters in memory that all forked processes share.
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
  static std::map<const sqlite3_io_methods*, sqlite3_io_methods>
      counting;  // the file and its WAL have different methods
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

// How long in_processes() runs `work` in each of the processes. `work` counts its results in counts().
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

// The baseline for SqliteRuns: plain SQLite with WAL and synchronous=FULL, and two transactions for each run: one
// inserts a row, the other updates it.
void RawSqliteRuns(benchmark::State& state) {
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
    sqlite3_stmt *insert = nullptr, *update = nullptr;
    sqlite3_prepare_v2(db, "INSERT INTO t(a) VALUES (?1)", -1, &insert, nullptr);
    sqlite3_prepare_v2(db, "UPDATE t SET b = '0.123' WHERE id = ?1", -1, &update, nullptr);
    while (seconds_now() < until) {
      bool ok = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
      sqlite3_bind_text(insert, 1, kParameters.c_str(), -1, SQLITE_STATIC);
      ok = sqlite3_step(insert) == SQLITE_DONE && ok;
      sqlite3_reset(insert);
      const sqlite3_int64 id = sqlite3_last_insert_rowid(db);
      ok = sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK && ok;
      ok = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK && ok;
      sqlite3_bind_int64(update, 1, id);
      ok = sqlite3_step(update) == SQLITE_DONE && ok;
      sqlite3_reset(update);
      ok = sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK && ok;
      ok ? ++counts().done : ++counts().errors;
    }
  });
  remove_store(path);
}

// Creates and finishes runs, over and over. Uses two writes for each run, or with `fused` one write that finishes a run
// and creates the next one.
void create_and_finish_runs(benchmark::State& state, const std::string& where, bool fused) {
  {
    Store store(where);
    (void)store.write(Create{{Kind::kExperiment, "e"}});
  }
  count_syncs();
  in_processes(state, static_cast<int>(state.range(0)), [&](int process, double until) {
    Store store(where);
    int64_t number = 0;
    const auto next = [&] {
      const std::string id = std::to_string(process) + "-" + std::to_string(++number);
      return Create{{Kind::kRun, id}, "e", "", kParameters};
    };
    Create run = next();
    bool ok = store.write(run).has_value();
    while (seconds_now() < until) {
      const SetRunState finish{run.subject.id, RunState::kFinished, "0.123"};
      run = next();
      if (fused)
        ok = store.write(Batch{{finish, run}}).has_value() && ok;
      else
        ok = store.write(finish).has_value() && store.write(run).has_value() && ok;
      ok ? ++counts().done : ++counts().errors;
    }
  });
}

void SqliteRuns(benchmark::State& state) {
  const std::string path = bench_file("runs.db");
  remove_store(path);
  create_and_finish_runs(state, path, false);
  remove_store(path);
}
void SqliteRunsFused(benchmark::State& state) {
  const std::string path = bench_file("runs.db");
  remove_store(path);
  create_and_finish_runs(state, path, true);
  remove_store(path);
}

PostgresServer& durable_server() {
  static PostgresServer server(true);
  return server;
}
void RawPostgresRuns(benchmark::State& state) {
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
void PostgresRuns(benchmark::State& state) {
  durable_server().execute("DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench");
  create_and_finish_runs(state, durable_server().url("bench"), false);
}
void PostgresRunsFused(benchmark::State& state) {
  durable_server().execute("DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench");
  create_and_finish_runs(state, durable_server().url("bench"), true);
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

// The baseline for SqliteBulk: plain SQLite, one row for each point, one transaction for each run.
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

// Reads the store that SqliteBulk has filled.
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
void overlay(benchmark::State& state, int64_t max_points) {
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
    for (const auto& list : store.history(series, {.max_points = max_points})) points += list.size();
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

// Several threads write, one point at a time.
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

    for (int t = 0; t < state.range(0); ++t) {
      threads.emplace_back([&, t] {
        for (int64_t i = 0; seconds_now() < begin + kSeconds; ++i) {
          const AddPoints point{"r", "metric/" + std::to_string((t * 7 + i) % kSeries), {{i, i, 0.5}}};
          store.write(point).has_value() ? ++counts().done : ++counts().errors;
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
BENCHMARK(RawSqliteRuns)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(SqliteRuns)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(SqliteRunsFused)->Arg(1)->Arg(4)->Arg(32) ONCE;
BENCHMARK(RawPostgresRuns)->Arg(1)->Arg(4) ONCE;
BENCHMARK(PostgresRuns)->Arg(1)->Arg(4) ONCE;
BENCHMARK(PostgresRunsFused)->Arg(1)->Arg(4) ONCE;
BENCHMARK(SqliteSinglePoints)->Arg(1)->Arg(64) ONCE;
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
