// Tests that no request costs more than its limit, and nothing more once its client has left. Tests that an expensive
// caller does not hold up another.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "web/testing.h"

namespace sinew::web {
namespace {

// Makes runs with a long tag, against which a pattern takes long to match.
void make_long_runs(TestServer& test, int count, size_t bytes) {
  for (int i = 0; i < count; ++i) {
    store::Create create{{store::Kind::kRun, "long" + std::to_string(i)}, "0"};
    create.tags = {{"t", std::string(bytes, 'a')}};
    ASSERT_TRUE(test.store.write(create));
  }
}

// A search that would take minutes: 100 comparisons of every byte of every tag with 90 characters of a pattern.
std::string endless_search() {
  const std::string clause = "tags.t LIKE '%" + std::string(90, '_') + std::string(900, 'a') + "b'";
  std::string filter = "tags.t LIKE '%'";
  for (int i = 0; i < 90; ++i) filter += " AND tags.t != 'x'";
  filter += " AND " + clause;
  return PlainJson{{"experiment_ids", {"0"}}, {"filter", filter}}.dump();
}

std::string post(TestServer& test, const std::string& target, const std::string& body, const std::string& who) {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
         test.secrets[who] + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Cost, ALongRequestEndsAtItsLimit) {
  TestServer test(0, {}, system_clock(), [](Options& options) { options.request_seconds = 0.3; });
  make_long_runs(test, 4, 3'000'000);
  const Reply reply = test.call("POST", kMlflow + "/runs/search", endless_search(), "r");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.json["code"], "REQUEST_TOO_LONG");
  EXPECT_NE(reply.json["hint"], "");
  EXPECT_EQ(reply.json["error_code"], "TEMPORARILY_UNAVAILABLE");
}

TEST(Cost, ARequestThatNeedsTooMuchMemoryIsRefused) {
  TestServer test(0, {}, system_clock(), [](Options& options) { options.request_bytes = 1'000'000; });
  const std::string run = new_run(test, "x", "s");
  store::AddPoints points{run, "m", {}};
  for (int64_t i = 0; i < 100'000; ++i) points.points.push_back({i, i, 1.0});
  ASSERT_TRUE(test.store.write(points));
  for (const std::string& target : {kMlflow + "/metrics/get-history?metric_key=m&run_id=" + run,
                                    "/api/v1/runs/" + run + "/metrics/m", "/api/v1/overlay?key=m&run=" + run}) {
    const Reply reply = test.call("GET", target, "", "r");
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_EQ(reply.json["code"], "REQUEST_TOO_LARGE") << target;
  }
  EXPECT_EQ(test.call("GET", "/api/v1/runs/" + run + "/metrics/m?first_step=90000", "", "r").status, 200);
}

TEST(Cost, AnAnswerIsBoundedAndItsTokenContinues) {
  TestServer test;
  constexpr int kRuns = 40;
  make_long_runs(test, kRuns, 2'000'000);
  std::set<std::string> seen;
  std::string token;
  int pages = 0;
  do {
    const PlainJson body{
        {"experiment_ids", {"0"}}, {"order_by", {"tags.t ASC"}}, {"max_results", 50'000}, {"page_token", token}};
    const Reply reply = test.call("POST", kMlflow + "/runs/search", body.dump(), "r");
    ASSERT_EQ(reply.status, 200) << reply.response.body.substr(0, 500);
    EXPECT_LT(reply.response.body.size(), 40u << 20);
    for (const PlainJson& run : reply.json["runs"]) seen.insert(run["info"]["run_id"]);
    token = reply.json.value("next_page_token", "");
    ++pages;
  } while (!token.empty() && pages < kRuns);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kRuns));
  EXPECT_GT(pages, 1);
}

TEST(Cost, FiltersPatternsAndOrdersAreBounded) {
  TestServer test;
  const auto search = [&](const PlainJson& more) {
    PlainJson body{{"experiment_ids", {"0"}}};
    body.update(more);
    return test.call("POST", kMlflow + "/runs/search", body.dump(), "r");
  };
  const auto like = [](const std::string& pattern) { return PlainJson{{"filter", "tags.t LIKE '" + pattern + "'"}}; };
  std::string percents;
  for (int i = 0; i < 101; ++i) percents += "%a";
  for (const PlainJson& bad : {like(percents), like(std::string(5001, 'a')), like(std::string(101, '_')),
                               PlainJson{{"filter", "tags.t = '" + std::string(200'000, 'a') + "'"}},
                               PlainJson{{"order_by", PlainJson(std::vector<std::string>(51, "tags.t"))}}}) {
    const Reply reply = search(bad);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json["code"], "API_INVALID_VALUE");
    EXPECT_LT(reply.response.body.size(), 3000u);  // a refusal does not repeat the filter
  }
  EXPECT_EQ(search(like(percents.substr(2))).status, 200);
  EXPECT_EQ(search({{"order_by", PlainJson(std::vector<std::string>(50, "tags.t"))}}).status, 200);
}

TEST(Cost, ExpensiveCallersDoNotHoldUpOthers) {
  TestServer test;
  make_long_runs(test, 20, 3'000'000);
  {
    std::vector<RawSocket> hostile;
    for (int i = 0; i < 8; ++i)
      hostile.emplace_back(test.server->port()).send(post(test, kMlflow + "/runs/search", endless_search(), "r"));
    const std::string run = new_run(test, "x", "s");
    for (int i = 0; i < 20; ++i) {
      const PlainJson metric{{"run_id", run}, {"key", "m"}, {"value", i}, {"timestamp", i}, {"step", i}};
      EXPECT_EQ(test.call("POST", kMlflow + "/runs/log-metric", metric.dump(), "s").status, 200);
      EXPECT_EQ(test.call("GET", kMlflow + "/runs/get?run_id=" + run, "", "s").status, 200);
    }
    EXPECT_EQ(test.call("GET", "/health", "", "").status, 200);
    for (const char* page : {"/api/v1/runs?limit=1", "/api/v1/experiments", "/api/v1/models"}) {
      for (const char* who : {"s", "r"}) EXPECT_EQ(test.call("GET", page, "", who).status, 200) << page << " " << who;
    }
    for (RawSocket& one : hostile) EXPECT_FALSE(one.has_bytes());  // the searches run or wait
  }
  // The clients have left. So the threads are free again, long before the searches would have ended.
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/search", R"({"experiment_ids": ["1"]})", "a").status, 200);
}

TEST(Cost, TheQueueOfACallerIsBounded) {
  TestServer test;
  make_long_runs(test, 20, 3'000'000);
  std::vector<RawSocket> hostile;
  const std::string request = post(test, kMlflow + "/runs/search", endless_search(), "r");
  for (int i = 0; i < 510; ++i) hostile.emplace_back(test.server->port()).send(request);
  std::string refused;
  for (int tries = 0; tries < 2000 && refused.empty(); ++tries) {
    for (RawSocket& one : hostile) {
      if (refused.empty() && one.has_bytes()) refused = one.until("}");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429")) << refused;
  EXPECT_NE(refused.find("API_CALLER_BUSY"), std::string::npos) << refused;
  EXPECT_NE(refused.find("retry-after: 1"), std::string::npos) << refused;
}

// The answers are larger than what the system keeps for a connection, so they wait in the server.
TEST(Cost, AnswersThatNobodyReadsAreBounded) {
  TestServer test(
      0, {}, system_clock(), [](Options& options) { options.answer_bytes = 40'000'000; }, 300);
  const std::string run = new_run(test, "x", "s");
  store::AddPoints points{run, "m", {}};
  for (int64_t i = 0; i < 400'000; ++i)
    points.points.push_back({100'000'000 + i, 1'700'000'000'000 + i, 1.0 / static_cast<double>(i + 3)});
  ASSERT_TRUE(test.store.write(points));
  const std::string large = "/api/v1/runs/" + run + "/metrics/m?points=400000";
  const auto read_slowly = [&](const std::string& who) {
    auto client = std::make_unique<RawSocket>(test.server->port());
    client->send("GET " + large + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + test.secrets[who] + "\r\n\r\n");
    for (int tries = 0; tries < 5000 && !client->has_bytes(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(client->has_bytes());
    return client;
  };
  auto first = read_slowly("r");
  const auto second = read_slowly("s");
  for (const char* who : {"r", "a"}) {  // beyond its own share; beyond that of all
    const Reply refused = test.call("GET", large, "", who);
    EXPECT_EQ(refused.status, 503) << who;
    EXPECT_EQ(refused.json["code"], "API_OVERLOADED") << who;
    EXPECT_EQ(refused.response.headers.at("retry-after"), "1") << who;
    EXPECT_EQ(test.call("GET", "/api/v1/runs/" + run, "", who).status, 200) << "small answers pass";
    EXPECT_EQ(test.call("GET", "/health", "", who).status, 200);
  }
  const PlainJson metric{{"run_id", run}, {"key", "n"}, {"value", 1}, {"timestamp", 1}, {"step", 1}};
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/log-metric", metric.dump(), "s").status, 200);
  first = nullptr;  // it leaves
  Reply later;
  for (int tries = 0; tries < 2000 && later.status != 200; ++tries) {
    later = test.call("GET", large, "", "a");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(later.status, 200);
  EXPECT_GT(later.response.body.size(), 13'000'000U);
}

TEST(Cost, HealthTellsWhenTheStoreIsGoneAndNoWriteIsAcknowledged) {
  TestServer test;
  const std::string run = new_run(test, "x", "s");
  EXPECT_EQ(test.call("GET", "/health", "", "").response.body, "OK");
  std::filesystem::remove(test.folder / "store.db");
  const PlainJson tag{{"run_id", run}, {"key", "k"}, {"value", "v"}};
  const Reply write = test.call("POST", kMlflow + "/runs/set-tag", tag.dump(), "s");
  EXPECT_EQ(write.status, 503) << write.response.body;
  Reply health;
  for (int i = 0; i < 2000 && health.status != 503; ++i) {
    health = test.call("GET", "/health", "", "");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.json["code"], "API_STORE_AWAY");
  EXPECT_NE(health.response.body.find("removed"), std::string::npos) << health.response.body;
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "r").json["code"], "API_STORE_AWAY");
  EXPECT_EQ(test.call("GET", "/version", "", "").status, 200);
}

}  // namespace
}  // namespace sinew::web
