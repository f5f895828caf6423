// Tests the components of web/ one by one: rate limits, threads, local names, the router, tokens, Prometheus' text
// format, and the paths of files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/disk.h"
#include "base/expected_error.h"
#include "base/hand_clock.h"
#include "web/artifacts.h"
#include "web/auth.h"
#include "web/pool.h"
#include "web/prometheus.h"
#include "web/rate_limiter.h"
#include "web/router.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

TEST(RateLimiter, AllowsASteadyRateAndAShortBurst) {
  RateLimiter limiter(10);
  int taken = 0;
  while (limiter.take("a", 100) == 0) ++taken;
  EXPECT_EQ(taken, 20);
  EXPECT_NEAR(limiter.take("a", 100), 0.1, 1e-9);
  EXPECT_EQ(limiter.take("b", 100), 0);  // another caller has its own limit
  for (double now = 101; now < 111; now += 0.001) taken += limiter.take("a", now) == 0 ? 1 : 0;
  EXPECT_NEAR(taken, 20 + 10 + 100, 2);
  EXPECT_GT(limiter.take("a", 50), 0);  // a clock that goes back adds no tokens to the bucket
  EXPECT_EQ(RateLimiter(0).take("a", 0), 0);
}

TEST(RateLimiter, InventedCallersDoNotFillTheMemory) {
  RateLimiter limiter(1);
  for (int i = 0; i < 100'000; ++i) EXPECT_EQ(limiter.take(std::to_string(i), i * 1e-6), 0);
}

constexpr auto kAccepted = Pool::Outcome::kAccepted;

// Makes work that waits until the test lets it go.
class Gate {
 public:
  std::function<void()> work(const std::string& name = "") {
    return [this, name] {
      std::unique_lock lock(mutex_);
      begun_.push_back(name);
      ++running_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return tickets_ > 0; });
      --tickets_;
      --running_;
      changed_.notify_all();
    };
  }
  void let(int count) {
    const std::lock_guard lock(mutex_);
    tickets_ += count;
    changed_.notify_all();
  }
  // Waits until `count` works have begun, and returns their names in the order in which they began.
  std::vector<std::string> begun(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return begun_.size() >= count; }));
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> begun_;
  int tickets_ = 0, running_ = 0;
};

TEST(Pool, ACallerCannotOccupyAllThreads) {
  Gate gate;
  Pool pool({4, 3}, system_clock());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pool.post("greedy", gate.work("greedy")), kAccepted);
  gate.begun(3);
  EXPECT_EQ(pool.post("other", gate.work("other")), kAccepted);
  EXPECT_EQ(gate.begun(4)[3], "other");
  EXPECT_EQ(pool.running(), 4u);
  gate.let(100);
}

TEST(Pool, CallersTakeTurns) {
  Gate gate;
  HandClock clock;
  Pool pool({1, 1}, clock);
  EXPECT_EQ(pool.post("first", gate.work("first")), kAccepted);
  gate.begun(1);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(pool.post("greedy", gate.work("greedy")), kAccepted);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.post("other", gate.work("other")), kAccepted);
  gate.let(6);
  const std::vector<std::string> begun = gate.begun(7);
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "greedy"), 3);
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "other"), 3);
  gate.let(100);
}

TEST(Pool, ACallerWithExpensiveWorkWaitsForOneWithCheapWork) {
  Gate gate;
  HandClock clock;
  Pool pool({1, 1}, clock);
  const auto expensive = [&] {
    gate.work("expensive")();
    clock.seconds = clock.seconds + 10;
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pool.post("hostile", expensive), kAccepted);
  gate.begun(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.post("good", gate.work("cheap")), kAccepted);
  gate.let(6);
  const std::vector<std::string> begun = gate.begun(6), all{"expensive", "cheap", "cheap", "cheap", "cheap", "cheap"};
  EXPECT_EQ(std::vector(begun.begin(), begun.begin() + 6), all);
  gate.let(100);
}

constexpr auto kLight = Pool::Weight::kLight;

TEST(Pool, ALightWorkDoesNotWaitForHeavyOnes) {
  Gate heavy, light;
  Pool pool({.threads = 4, .running_each = 2, .kept = 1}, system_clock());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.post("a", heavy.work("a")), kAccepted);
  heavy.begun(2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.post("b", heavy.work("b")), kAccepted);
  heavy.begun(3);
  EXPECT_EQ(pool.post("other", light.work("other"), kLight), kAccepted);
  EXPECT_EQ(light.begun(1)[0], "other");
  EXPECT_EQ(pool.running(), 4u) << "no fourth heavy work has begun";
  // The light work of a caller that is at its limit begins, too.
  EXPECT_EQ(pool.post("a", light.work("a"), kLight), kAccepted);
  light.let(1);
  EXPECT_EQ(light.begun(2)[1], "a");
  light.let(100);
  heavy.let(100);
  heavy.begun(10);
}

TEST(Pool, LightWorksOfACallerDoNotOccupyAllThreads) {
  Gate gate;
  Pool pool({.threads = 4, .running_each = 2, .kept = 1}, system_clock());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pool.post("greedy", gate.work("greedy"), kLight), kAccepted);
  gate.begun(2);
  EXPECT_EQ(pool.post("other", gate.work("other"), kLight), kAccepted);
  EXPECT_EQ(gate.begun(3)[2], "other");
  gate.let(100);
}

TEST(SmallPage, HasABoundedNumberOfRecords) {
  const Router router(routes());
  const auto is_small = [&](const std::string& path, const std::map<std::string, std::string>& query) {
    http::Request request;
    request.query = query;
    const RouteMatch match = router.find("GET", path);
    EXPECT_TRUE(is_scan(*match.route)) << path;
    return is_small_page(*match.route, request);
  };
  for (const char* page : {"/api/v1/experiments", "/api/v1/runs", "/api/v1/models"}) {
    EXPECT_TRUE(is_small(page, {}));
    EXPECT_TRUE(is_small(page, {{"limit", "1000"}, {"before", "7"}}));
    for (const char* large : {"1001", "10000", "99999999999999999999", "x", ""})
      EXPECT_FALSE(is_small(page, {{"limit", large}})) << large;
  }
  EXPECT_TRUE(is_small("/api/v1/runs", {{"experiment", "e"}, {"key", "loss"}}));
  EXPECT_FALSE(is_small("/api/v1/runs", {{"name", "x"}}));
  EXPECT_FALSE(is_small("/api/v1/runs", {{"state", "failed"}, {"limit", "1"}}));
  for (const char* scan : {"/metrics", "/api/v1/overlay", "/api/v1/models/m", "/api/2.0/mlflow/experiments/search"})
    EXPECT_FALSE(is_small(scan, {})) << scan;
}

TEST(Pool, QueuesAreBounded) {
  Gate gate;
  Pool pool({1, 1, 3, 5}, system_clock());
  EXPECT_EQ(pool.post("a", gate.work()), kAccepted);
  gate.begun(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.post("a", gate.work()), kAccepted);
  EXPECT_EQ(pool.post("a", gate.work()), Pool::Outcome::kCallerHasTooMuch);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pool.post("b", gate.work()), kAccepted);
  EXPECT_EQ(pool.post("c", gate.work()), Pool::Outcome::kFull);
  gate.let(100);
}

TEST(Pool, DestructorDropsWaitingWork) {
  std::atomic<int> done = 0;
  std::atomic<bool> begun = false, dropped = false;
  {
    Pool pool({1, 1}, system_clock());
    auto token = std::make_shared<int>();
    EXPECT_EQ(pool.post("a",
                        [&, waiting = std::weak_ptr<int>(token)] {
                          begun = true;
                          for (int i = 0; i < 10'000 && !waiting.expired(); ++i) ::usleep(1000);
                          dropped = waiting.expired();
                        }),
              kAccepted);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(pool.post("a", [token, &done] { ++done; }), kAccepted);
    for (int i = 0; i < 10'000 && !begun; ++i) ::usleep(1000);
  }
  EXPECT_TRUE(dropped);
  EXPECT_EQ(done, 0);
}

TEST(Pool, DestroysFinishedWorkWithoutTheLock) {
  std::atomic<int> done = 0;
  Pool pool({1, 1}, system_clock());
  const auto posts_at_its_end = [&](int*) { EXPECT_EQ(pool.post("a", [&] { ++done; }), kAccepted); };
  auto last = std::shared_ptr<int>(nullptr, posts_at_its_end);
  EXPECT_EQ(pool.post("a", [&done, kept = std::move(last)] { ++done; }), kAccepted);
  for (int i = 0; i < 10'000 && done < 2; ++i) ::usleep(1000);
  EXPECT_EQ(done, 2);
}

TEST(Auth, WithoutTokensOnlyLocalNamesAreAllowed) {
  const Options options;
  Auth auth(options);
  const auto role = [&](const std::string& host, const std::string& origin = "") {
    http::Request request;
    if (!host.empty()) request.headers["host"] = host;
    if (!origin.empty()) request.headers["origin"] = origin;
    try {
      return auth.caller(request).role;
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.kind.status, 403);
      return Role::kNone;
    }
  };
  for (const char* own :
       {"localhost", "localhost:4711", "127.0.0.1", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:1"}) {
    EXPECT_EQ(role(own), Role::kAdmin) << own;
    EXPECT_EQ(role(own, std::string("http://") + own), Role::kAdmin) << own;
    EXPECT_EQ(role(own, "http://evil.example"), Role::kNone) << own;
  }
  for (const char* other :
       {"", ":4711", "127.0.0.1.evil.example", "127.0.0.1.evil.example:4711", "127.evil.example", "127.", "127.0.0.1 x",
        "128.0.0.1", "0x7f.0.0.1", "localhost.evil.example", "[::1", "[::2]", "[::1].evil.example", "evil.example"}) {
    EXPECT_EQ(role(other), Role::kNone) << other;
    EXPECT_EQ(role(other, std::string("http://") + other), Role::kNone) << other;
  }
}

TEST(Auth, APageOfAnotherSiteCannotChangeAnything) {
  Folder folder;
  Options options;
  options.tokens = folder / "tokens.json";
  const std::string secret = add_token(options.tokens, "a", Role::kAdmin);
  Auth auth(options);
  const auto status = [&](const std::string& method, const http::Headers& headers) {
    http::Request request;
    request.method = method;
    request.headers = headers;
    request.headers["host"] = "server.example:4711";
    request.headers["authorization"] = "Bearer " + secret;
    try {
      return auth.caller(request).role == Role::kAdmin ? 200 : 401;
    } catch (const Refused& refused) {
      return refused.kind.status;
    }
  };
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(status(method, {}), 200);
    for (const char* own : {"http://server.example:4711", "https://server.example:4711"}) {
      EXPECT_EQ(status(method, {{"origin", own}, {"sec-fetch-site", "same-origin"}}), 200) << own;
    }
    for (const char* other :
         {"null", "http://evil.example", "http://server.example", "http://server.example:4711.evil.example"}) {
      EXPECT_EQ(status(method, {{"origin", other}}), 403) << method << " " << other;
    }
    EXPECT_EQ(status(method, {{"sec-fetch-site", "cross-site"}}), 403) << method;
  }
  EXPECT_EQ(status("GET", {{"origin", "http://evil.example"}, {"sec-fetch-site", "cross-site"}}), 200);
}

TEST(Router, FindsEveryRouteByItsOwnPattern) {
  const Router router(routes());
  std::set<std::string> seen;
  for (const Route& route : routes()) {
    std::string path = route.path;
    for (size_t at; (at = path.find('{')) != std::string::npos;) path.replace(at, path.find('}') - at + 1, "some");
    const RouteMatch match = router.find(route.method, path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_EQ(match.route, &route) << path << " is served by " << match.route->path;
    EXPECT_TRUE(seen.insert(std::string(route.method) + route.path).second) << "twice: " << route.path;
    EXPECT_GT(std::string_view(route.help).size(), 4u) << route.path;
  }
}

TEST(Router, HandlesParametersMethodsAndAliases) {
  const Router router(routes());
  RouteMatch match = router.find("GET", "/api/v1/runs/r 1/metrics/a/b//c");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.path.at("run"), "r 1");
  EXPECT_EQ(match.path.at("key"), "a/b//c");
  EXPECT_EQ(router.find("HEAD", "/health").route, router.find("GET", "/health").route);
  EXPECT_EQ(router.find("GET", "/ajax-api/2.0/mlflow/runs/get").route,
            router.find("GET", "/api/2.0/mlflow/runs/get").route);
  match = router.find("PATCH", "/api/v1/runs/x");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.other_methods, "GET");
  for (const char* nothing : {"/", "", "/api/v1/runs/", "/api/v1/runs/x/", "/api/v1//runs", "/health/", "*"}) {
    EXPECT_EQ(router.find("GET", nothing).route, nullptr) << nothing;
  }
}

TEST(Tokens, AreStoredAsHashesOfTheirSecrets) {
  Folder folder;
  const std::string path = folder / "tokens.json";
  EXPECT_TRUE(read_tokens(path).empty());
  const std::string reader = add_token(path, "reader", Role::kRead), admin = add_token(path, "boss", Role::kAdmin);
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  const std::string text = read_text(system_disk(), path);
  EXPECT_EQ(text.find(reader.substr(8)), std::string::npos);
  const auto tokens = read_tokens(path);
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_NE(tokens[0].salt, tokens[1].salt);
  EXPECT_EQ(find_token(tokens, reader, 0)->rights.role, Role::kRead);
  EXPECT_EQ(find_token(tokens, admin, 0)->name, "boss");
  for (const std::string& wrong : {std::string(), std::string("x"), reader + "0", reader.substr(1), tokens[0].hash}) {
    EXPECT_EQ(find_token(tokens, wrong, 0), nullptr);
  }
  EXPECT_TRUE(remove_token(path, "reader"));
  const std::string fresh = add_token(path, "reader", Role::kSubmit);
  EXPECT_EQ(find_token(read_tokens(path), reader, 0), nullptr);
  EXPECT_EQ(find_token(read_tokens(path), fresh, 0)->rights.role, Role::kSubmit);
  EXPECT_TRUE(remove_token(path, "reader"));
  EXPECT_FALSE(remove_token(path, "reader"));
  EXPECT_EQ(find_token(read_tokens(path), fresh, 0), nullptr);
  for (const char* name : {"two words", "local", ""})
    EXPECT_EQ(code_of([&] { add_token(path, name, Role::kRead); }), "SERVER_BAD_TOKEN_NAME") << name;
  for (const char* damage :
       {"", "{", "{\"tokens\": [{}]}", "{\"tokens\": 3}", "{\"tokens\": [{\"name\": \"a\", \"role\": \"god\"}]}",
        R"({"tokens": [{"name": "a token with a long name", "role": "read", "salt": 3}]})",
        R"({"tokens": [{"name": "a token with a long name", "role": "read", "salt": "of more than 15 bytes"}]})"}) {
    std::ofstream(path) << damage;
    EXPECT_EQ(code_of([&] { read_tokens(path); }), "SERVER_BAD_TOKEN_FILE") << damage;
  }
}

TEST(Tokens, ConcurrentChangesLoseNoToken) {
  Folder folder;
  const std::string path = folder / "tokens.json";
  constexpr int kThreads = 4, kEach = 5;
  for (int i = 0; i < kThreads; ++i) add_token(path, "old" + std::to_string(i), Role::kRead);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) add_token(path, std::to_string(thread) + "-" + std::to_string(i), Role::kRead);
      EXPECT_TRUE(remove_token(path, "old" + std::to_string(thread)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_tokens(path).size(), static_cast<size_t>(kThreads * kEach));
}

TEST(Prometheus, AnyTextCanBeALabel) {
  PrometheusText text;
  text.family("sinew_x", "gauge", "one\nline \\ only");
  text.sample({}, 1);
  text.sample({{"a", "say \"\\\n\""}, {"b", ""}}, -INFINITY);
  text.sample({{"a", "n"}}, NAN);
  text.sample({{"a", "t"}}, 1e-300);
  EXPECT_EQ(text.text(),
            "# HELP sinew_x one\\nline \\\\ only\n# TYPE sinew_x gauge\nsinew_x 1\n"
            "sinew_x{a=\"say \\\"\\\\\\n\\\"\",b=\"\"} -Inf\nsinew_x{a=\"n\"} NaN\nsinew_x{a=\"t\"} 1e-300\n");
}

// The value of a series of the page, or NaN if the page does not have it.
double series(const std::string& page, const std::string& name) {
  const size_t at = page.find("\n" + name + " ");
  return at == page.npos ? std::nan("") : std::strtod(page.c_str() + at + name.size() + 2, nullptr);
}

TEST(Prometheus, RunsHaveTheirAccounts) {
  TestServer test;
  const auto page = [&] { return test.call("GET", "/metrics", "", "r").response.body; };
  const auto directory =
      run_with_files(test, {"accounts.json"},
                     R"({"status": "running", "steps": 12, "samples": 768, "time": {"lanes": 2, "forward": 2.5},
          "resources": {"cpu_seconds": 4.25, "throttled_seconds": 0.5, "major_faults": 3, "disk_read_bytes": 4096,
                        "network_sent_bytes": 1000, "network_received_bytes": 2000, "peak_memory_bytes": 5000},
          "memory_bytes": {"program": 100, "data": 200, "parameters": 300, "optimizer": 600},
          "attempt": {"steps": 12, "flops": 1e9}})");
  const std::string live = page();
  EXPECT_EQ(series(live, "sinew_run_stage_seconds_total{run=\"d\",stage=\"forward\"}"), 2.5) << live;
  EXPECT_EQ(series(live, "sinew_run_stage_seconds_total{run=\"d\",stage=\"data_wait\"}"), 0);
  EXPECT_EQ(series(live, "sinew_run_samples_total{run=\"d\"}"), 768);
  EXPECT_EQ(series(live, "sinew_run_steps_total{run=\"d\"}"), 12);
  EXPECT_EQ(series(live, "sinew_run_cpu_seconds_total{run=\"d\"}"), 4.25);
  EXPECT_EQ(series(live, "sinew_run_cpu_throttled_seconds_total{run=\"d\"}"), 0.5);
  EXPECT_EQ(series(live, "sinew_run_major_faults_total{run=\"d\"}"), 3);
  EXPECT_EQ(series(live, "sinew_run_disk_read_bytes_total{run=\"d\"}"), 4096);
  EXPECT_EQ(series(live, "sinew_run_network_sent_bytes_total{run=\"d\"}"), 1000);
  EXPECT_EQ(series(live, "sinew_run_network_received_bytes_total{run=\"d\"}"), 2000);
  EXPECT_EQ(series(live, "sinew_run_flops_total{run=\"d\"}"), 1e9);
  EXPECT_EQ(series(live, "sinew_run_memory_bytes{run=\"d\",kind=\"optimizer\"}"), 600);
  EXPECT_EQ(series(live, "sinew_run_memory_bytes{run=\"d\",kind=\"peak\"}"), 5000);
  EXPECT_NE(live.find("# TYPE sinew_run_stage_seconds_total counter\n"), live.npos);
  EXPECT_NE(live.find("# TYPE sinew_run_memory_bytes gauge\n"), live.npos);

  std::ofstream(directory / "report.json") << R"({"status": "done", "samples": 1000, "time": {"forward": 3}})";
  const std::string ended = page();
  EXPECT_EQ(series(ended, "sinew_run_samples_total{run=\"d\"}"), 1000) << "the report says more than the accounts";
  EXPECT_EQ(series(ended, "sinew_run_stage_seconds_total{run=\"d\",stage=\"forward\"}"), 3);
  EXPECT_TRUE(std::isnan(series(ended, "sinew_run_cpu_seconds_total{run=\"d\"}"))) << "the report has none";
}

// Whoever trains may write any file into the directory of the run.
TEST(Prometheus, NoFileOfARunCanHurtThePage) {
  TestServer test;
  const auto directory = run_with_files(test, {"report.json"}, "{\"status\": \"done\", \"samples\": \"many\"}");
  const auto page = [&] { return test.call("GET", "/metrics", "", "r").response; };
  const auto shows_no_accounts = [&](const char* what) {
    const auto shown = page();
    EXPECT_EQ(shown.status, 200) << what;
    EXPECT_NE(shown.body.find("# TYPE sinew_run_samples_total counter"), std::string::npos) << what;
    EXPECT_EQ(shown.body.find("sinew_run_samples_total{"), std::string::npos) << what;
  };
  shows_no_accounts("a wrong type");
  std::ofstream(directory / "report.json") << std::string(5 << 20, ' ') << R"({"status": "done"})";
  shows_no_accounts("a large file");
  std::filesystem::remove(directory / "report.json");
  std::ofstream(test.folder / "elsewhere.json") << R"({"status": "done", "samples": 5})";
  std::filesystem::create_symlink(test.folder / "elsewhere.json", directory / "report.json");
  shows_no_accounts("a link");
  std::filesystem::remove(directory / "report.json");
  ASSERT_EQ(::mkfifo((directory / "report.json").c_str(), 0600), 0);
  shows_no_accounts("a pipe");
}

TEST(Files, PathsThatLeaveTheirFolderAreRefused) {
  for (const char* path : {"a", "a/b.c", "ü b/ c", "...", "a/..b"}) EXPECT_NO_THROW(check_path(path, false)) << path;
  for (const std::string& path : {std::string(".."), std::string("a/../b"), std::string("/a"), std::string("a/"),
                                  std::string("a//b"), std::string("./a"), std::string("a\\b"), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string(401, 'x'), std::string()}) {
    EXPECT_THROW(check_path(path, false), Refused) << path;
    EXPECT_THROW(parse_artifact_ref("e/r/artifacts/" + path + (path.empty() ? "/" : "")), Refused) << path;
  }
  EXPECT_EQ(parse_artifact_ref("e/r/artifacts/x/y").path, "x/y");
  EXPECT_EQ(parse_artifact_ref("e/r/artifacts").path, "");
  EXPECT_EQ(parse_artifact_ref("e/models/m-1/artifacts/x").subject, (store::Subject{store::Kind::kModel, "m-1", 0}));
  EXPECT_EQ(parse_artifact_ref("versions/a/b/3/artifacts/x").subject,
            (store::Subject{store::Kind::kVersion, "a/b", 3}));
  for (const char* wrong :
       {"e", "e/r", "r/artifacts", "e/r/artifactsx", "versions/m/x/artifacts/a", "versions/m/0/artifacts/a"}) {
    EXPECT_THROW(parse_artifact_ref(wrong), Refused) << wrong;
  }
}

TEST(OpenApi, TheFileMatchesTheRoutes) {
  const std::string path = std::string(SINEW_SOURCE_DIR) + "/docs/reference/openapi.json";
  EXPECT_TRUE(read_text(system_disk(), path) == openapi_text())
      << "regenerate it: sinew server openapi > docs/reference/openapi.json";
}

}  // namespace
}  // namespace sinew::web
